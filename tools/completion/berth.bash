# bash completion for berth, made from the tables of its verbs and options.
# SPDX-License-Identifier: Apache-2.0

@tables@
# Offers the words that begin with the typed text.
_berth_offer()
{
    local IFS=$' \t\n'

    COMPREPLY+=($(compgen -W "$1" -- "$cur"))
}

# The same for the last item of a list with commas, without items that it already has.
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

# Sets `ids` to the ids of claims, devices, jobs or leases that berth knows, without those already on
# the line. Starts no daemon.
_berth_find_ids()
{
    local id before=" ${words[*]:1:cword-1} "

    ids=
    while IFS=$'\t' read -r id _; do
        [[ $before == *" $id "* ]] || ids+=" $id"
    done < <("$program" status --complete "$1" ${inventory:+--inventory "$inventory"} 2>/dev/null)
}

# Offers the values that the table names.
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

# Completes the command that begins at this position of `words`. Unlike COMP_WORDS, `words` is not split
# at ':' and '='.
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

# Records an option with its value.
_berth_take()
{
    [[ $1 != --inventory ]] || {
        inventory=${2//\\/}
        inventory=${inventory/#\~/$HOME}
    }
}

# Reads the words from this position to the cursor and sets `value`, `ended` and `command`, the position
# where the command begins.
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
