# bash completion for berth, made from the tables of its verbs and options.
# SPDX-License-Identifier: Apache-2.0

@tables@
# Offers those of the words that begin with what was typed.
_berth_offer()
{
    local IFS=$' \t\n'

    COMPREPLY+=($(compgen -W "$1" -- "$cur"))
}

# The same for the last part of a list with commas, without what it has already.
_berth_offer_list()
{
    local before= word

    [[ $cur != *,* ]] || before=${cur%,*},
    for word in $1; do
        if [[ ,$before != *",$word,"* && $before$word == "$cur"* ]]; then
            COMPREPLY+=("$before$word")
        fi
    done
}

# Puts the ids that berth knows into `ids`: claims, devices, jobs or leases, without those that are
# on the line before. No daemon is started.
_berth_find_ids()
{
    local id before=" ${words[*]:1:cword-1} "

    ids=
    while IFS=$'\t' read -r id _; do
        [[ $before == *" $id "* ]] || ids+=" $id"
    done < <("$program" status --complete "$1" ${inventory:+--inventory "$inventory"} 2>/dev/null)
}

# Offers what the table says.
_berth_offer_by_table()
{
    local offer=_berth_offer kinds=$1 ids

    if [[ $kinds == 'list '* ]]; then
        offer=_berth_offer_list
        kinds=${kinds#list }
    fi
    case $kinds in
    claims | devices | jobs | leases)
        _berth_find_ids "$kinds"
        "$offer" "$ids"
        ;;
    directories) _filedir -d ;;
    files) _filedir ;;
    processes) _pids ;;
    users) _berth_offer "$(compgen -u -- "$cur")" ;;
    verbs) ((cword > 2)) || _berth_offer "$_berth_verbs" ;;
    'words '*) "$offer" "${kinds#words }" ;;
    esac
}

# Goes on as the command would that begins at this place of `words`. Those are put together again
# where bash has split at ':' and '=', unlike COMP_WORDS.
_berth_command()
{
    local place=0 i whole

    for ((i = 0; i < $1; i++)); do
        whole=${COMP_WORDS[place]}
        while [[ $whole != "${words[i]}" ]] && ((place < COMP_CWORD)); do
            whole+=${COMP_WORDS[++place]}
        done
        ((++place))
    done
    _command_offset "$place"
}

# Takes note of an option with its value.
_berth_take()
{
    [[ $1 != --inventory ]] || {
        inventory=${2//\\/}
        inventory=${inventory/#\~/$HOME}
    }
}

# Reads the words from this place to the cursor, into `value`, `ended`, and `command`: where it
# begins.
_berth_read()
{
    local i letters option

    for ((i = $1; i < cword; i++)); do
        option=${words[i]}
        case $option in
        --)
            ended=yes
            [[ $operands != command ]] || command=$((i + 1))
            return
            ;;
        --*=*) _berth_take "${option%%=*}" "${option#*=}" ;;
        --*)
            [[ ${takes[$option]-} ]] || continue
            value=${takes[$option]}
            ((++i < cword)) || return
            _berth_take "$option" "${words[i]}"
            value=
            ;;
        -?*)
            for ((letters = 1; letters < ${#option}; letters++)); do
                [[ ${takes[-${option:letters:1}]-} ]] || continue
                ((letters + 1 == ${#option})) || break
                value=${takes[-${option:letters:1}]}
                ((++i < cword)) || return
                value=
            done
            ;;
        *)
            if [[ $operands == command ]]; then
                command=$i
                return
            fi
            ;;
        esac
    done
    [[ $operands != command || $cur == -* || $split == true ]] || command=$cword
}

_berth()
{
    local cur prev words cword split
    local program=${1/#\~/$HOME} first=2 operands= followers= flags= inventory=
    local value= ended= command=
    local -A takes=()

    _init_completion -s -n : || return
    if ((cword == 1)); then
        [[ $cur == -* ]] && _berth_offer '--help -h --version' || _berth_offer "$_berth_verbs"
        return
    fi
    declare -F "_berth_verb_${words[1]}" >/dev/null || return
    "_berth_verb_${words[1]}"
    if [[ $followers && $cword -gt 2 ]]; then
        declare -F "_berth_verb_${words[1]}_${words[2]}" >/dev/null || return
        "_berth_verb_${words[1]}_${words[2]}"
        first=3
    fi
    _berth_read "$first"
    if [[ $split == true && ! $command ]]; then
        _berth_offer_by_table "${takes[$prev]-}"
    elif [[ $value ]]; then
        _berth_offer_by_table "$value"
    elif [[ $command ]]; then
        _berth_command "$command"
    elif [[ $cur == -* && ! $ended ]]; then
        _berth_offer "$flags ${!takes[*]}"
    elif [[ $followers ]]; then
        _berth_offer "$followers"
    elif [[ $operands == verbs && $cword -eq 3 ]]; then
        declare -F "_berth_verb_${words[2]}" >/dev/null || return
        followers=
        "_berth_verb_${words[2]}"
        _berth_offer "$followers"
    else
        _berth_offer_by_table "$operands"
    fi
    [[ $command ]] || __ltrim_colon_completions "$cur"
} && complete -F _berth berth
