# weft.bash - completion of the command weft for bash: subcommands, options, planners and their options, corpora.
# All names are asked of the command itself. The line is read as it stands: bash takes words apart at : and =.

_weft_planners() {                      # COMMAND WORD: names, and behind a colon the options by name
    local list name=${2%%:*} key
    list=$("$1" plan --list 2>/dev/null)
    case $2 in
    *:*)
        for key in $(awk -v name="$name" 'last == name { print; exit } { last = $1 }' <<<"$list") seed epoch; do
            [[ $2 == *[:,]"$key="* ]] || echo "${2%"${2##*[:,]}"}$key="
        done ;;
    *)  awk '/^[a-z]/ { print $1 ":" }' <<<"$list" ;;
    esac
}

_weft_options() {                       # COMMAND SUBCOMMAND
    "$1" --help 2>/dev/null | awk -v name="$2" '/^  weft / { ours = $2 == name } ours && !/^      /' |
        grep -oE -e '--[a-z]+(\[?=[^] ]*)?' | sed 's/\[*=.*/=/' | sort -u
}

_weft_subcommands() { "$1" --help 2>/dev/null | awk '/^  weft / { print $2 }'; printf '%s\n' --help --version; }

# What may stand in this place; nothing: a file.
_weft_offers() {                        # COMMAND SUBCOMMAND LAST-WORD WORD OPERANDS
    local command=$1 sub=$2 last=$3 word=$4 operands=$5
    case $sub:$last in
    :*) _weft_subcommands "$command"; return ;;
    *:--corpus) "$command" corpora --names; return ;;
    *:--planner) _weft_planners "$command" "$word"; return ;;
    *:--out | *:--report | *:--from | *:--costs) return ;;
    esac
    case $sub:$word in
    *:--corpus=*) "$command" corpora --names | sed 's/^/--corpus=/' ;;
    *:--explain=*) printf '%s\n' --explain=lstm:128 --explain=gru:128 ;;
    *:--planner=*) _weft_planners "$command" "${word#--planner=}" | sed 's/^/--planner=/' ;;
    *:--*=*) ;;
    *:-*) _weft_options "$command" "$sub" ;;
    corpora:*) "$command" corpora --names ;;
    plan:*) [ "$operands" -eq 0 ] || _weft_planners "$command" "$word" ;;
    esac
}

_weft() {
    local line=${COMP_LINE:0:COMP_POINT} word words command sub='' last='' operands=0 offer cut i
    word=${line##*[[:blank:]]}
    read -ra words <<<"${line%"$word"}"
    command=${words[0]/#\~/$HOME}
    sub=${words[1]-}
    for ((i = 2; i < ${#words[@]}; i++)); do
        last=${words[i]}
        case ${words[i]} in
        --corpus | --corpus=*) operands=1 ;;
        -?*) ;;
        *) case ${words[i - 1]} in --corpus | --report | --from | --costs | --seconds) ;; *) operands=$((operands + 1)) ;; esac ;;
        esac
    done
    cut=${word%"${word##*[:=]}"}        # bash replaces what is behind the last of them
    [[ $COMP_WORDBREAKS == *:* ]] || cut=${word%"${word##*=}"}
    COMPREPLY=()
    while IFS= read -r offer; do
        [[ -z $offer || $offer != "$word"* ]] || COMPREPLY+=("${offer#"$cut"}")
    done < <(_weft_offers "$command" "$sub" "$last" "$word" "$operands")
    case ${COMPREPLY[0]-} in
    *[:=]) compopt -o nospace 2>/dev/null ;;
    '') compopt -o default 2>/dev/null ;;
    esac
    return 0
}
complete -F _weft weft
