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

_weft_options() {                       # COMMAND SUBCOMMAND: those with a value end in =
    "$1" "$2" --help 2>/dev/null | sed -nE 's/^  (--[a-z]+) [A-Z].*/\1=/p; s/^  (--[a-z]+)([[ ].*)?$/\1/p' | sort -u
}

_weft_subcommands() { "$1" --help 2>/dev/null | awk '/^  weft / { print $2 }'; printf '%s\n' help --help --version; }

_weft_experiments() {                   # COMMAND LIST: behind its last comma the experiments that it lacks
    local name before=${2%"${2##*,}"}
    for name in $("$1" lab --help 2>/dev/null | awk '/^  --only/ { on = 1; sub(/.*experiments: */, "") } on { print } / \[all\]/ { exit }' | tr -d ',' | sed 's/\[all\]//'); do
        [[ ,$before == *,"$name",* ]] || echo "$before$name"
    done
}

_weft_cells() { printf '%s\n' lstm: gru: elman: cifg: mgu:; }

# What may stand in this place; nothing: a file.
_weft_offers() {                        # COMMAND SUBCOMMAND LAST-WORD WORD OPERANDS
    local command=$1 sub=$2 last=$3 word=$4 operands=$5
    case $sub:$last in
    :* | help:*) _weft_subcommands "$command"; return ;;
    *:--corpus) "$command" corpora --names; return ;;
    *:--planner | *:--padded) _weft_planners "$command" "$word"; return ;;
    lab:--only) _weft_experiments "$command" "$word"; return ;;
    *:--out | *:--report | *:--from | *:--costs | *:--threads | *:--seconds) return ;;
    esac
    case $sub:$word in
    *:--corpus=*) "$command" corpora --names | sed 's/^/--corpus=/' ;;
    *:--planner=* | *:--padded=*) _weft_planners "$command" "${word#*=}" | sed "s/^/${word%%=*}=/" ;;
    lab:--only=*) _weft_experiments "$command" "${word#*=}" | sed 's/^/--only=/' ;;
    plan:--explain=*) _weft_cells | sed 's/^/--explain=/' ;;
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
        *) case ${words[i - 1]} in --corpus | --report | --from | --seconds | --costs | --threads) ;; *) operands=$((operands + 1)) ;; esac ;;
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
