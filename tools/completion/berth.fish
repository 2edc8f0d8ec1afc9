# fish completion for berth, made from the tables of its verbs and options.
# SPDX-License-Identifier: Apache-2.0

# Prints the words before the typed one, without berth itself.
function __berth_words
    set -l words (commandline -opc)
    set -e words[1]
    set -q words[1]
    and printf '%s\n' $words
end

function __berth_before_verb
    test (count (__berth_words)) -eq 0
end

function __berth_before_help
    __berth_before_word help
end

# Succeeds if this verb was typed and its subcommand is next.
function __berth_before_word
    set -l words (__berth_words)
    test "$words" = $argv[1]
end

# Succeeds if these words were typed, and no command yet.
function __berth_at
    set -l words (__berth_words)
    set -l count (count $argv)
    test (count $words) -ge $count
    and test "$words[1..$count]" = "$argv"
    and not __berth_command_at >/dev/null
end

# Prints the position in `commandline -opc` where the command to run begins. Fails if there is none yet.
function __berth_command_at
    set -l words (commandline -opc)
    set -l takes __berth_takes_$words[2]
    set -l next 3
    set -q $takes
    or return 1
    while test $next -le (count $words)
        set -l word $words[$next]
        switch $word
            case --
                echo (math $next + 1)
                return 0
            case '--*=*'
            case '--*'
                contains -- $word $$takes
                and set next (math $next + 1)
            case '-?*'
                set -l letters (string split '' -- (string sub -s 2 -- $word))
                for place in (seq (count $letters))
                    if contains -- -$letters[$place] $$takes
                        test $place -eq (count $letters)
                        and set next (math $next + 1)
                        break
                    end
                end
            case '*'
                echo $next
                return 0
        end
        set next (math $next + 1)
    end
    # The value of an option comes next.
    test $next -eq (math (count $words) + 1)
    and not string match -q -- '-*' (commandline -ct)
    and echo $next
end

function __berth_in_command
    set -l words (__berth_words)
    test "$words[1]" = $argv[1]
    and __berth_command_at >/dev/null
end

# Completes the command to run.
function __berth_command
    set -l words (commandline -opc)
    set -l place (__berth_command_at)
    set -l typed
    test $place -le (count $words)
    and set typed (string escape -- $words[$place..-1])
    complete -C (string join ' ' -- $typed (commandline -ct))
end

# Prints the ids that berth knows with a description, without those already on the line. Starts no
# daemon.
function __berth_ids
    set -l words (commandline -opc)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -l inventory
    for place in (seq 2 (count $words))
        switch $words[$place]
            case --inventory
                set inventory --inventory $words[(math $place + 1)]
            case '--inventory=*'
                set inventory $words[$place]
        end
    end
    for id in (command $program status --complete $argv[1] $inventory 2>/dev/null)
        contains -- (string split -m 1 \t -- $id)[1] $words[2..-1]
        or echo $id
    end
end

# Prints the typed part of an option's value.
function __berth_value
    commandline -ct | string replace -r -- '^--[a-z-]+=' ''
end

# Prints the words for the last item of a list with commas, without items that it already has.
function __berth_list
    set -l parts (string split , -- (__berth_value))
    set -l before $parts[1..-2]
    for word in $argv
        contains -- (string split -m 1 \t -- $word)[1] $before
        or string join , -- $before $word
    end
end

function __berth_directories
    __fish_complete_directories (__berth_value)
end

complete -c berth -f
complete -c berth -n __berth_before_verb -s h -l help -d 'list the verbs'
complete -c berth -n __berth_before_verb -l version -d 'tell the version'
@tables@
