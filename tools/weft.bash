# weft.bash - completion of the command weft for bash: subcommands, options, planners and their options, corpora, arrays.
# The command lists all names. The script reads the whole line, because bash splits words at : and =.

_weft_planners() {                      # COMMAND WORD: names, and after a colon the options by name
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
    "$1" "$2" --help 2>/dev/null | sed -nE 's/^  (--[a-z-]+) [A-Z].*/\1=/p; s/^  (--[a-z-]+)([[ ].*)?$/\1/p' | sort -u
}

_weft_experiments() {                   # COMMAND LIST: the experiments that are missing, after the last comma
    local name before=${2%"${2##*,}"}
    for name in $("$1" lab --help 2>/dev/null | awk '/^  --only/ { on = 1; sub(/.*experiments: */, "") } on { print } / \(all\)/ { exit }' | tr -d ',' | sed 's/(all)//'); do
        [[ ,$before == *,"$name",* ]] || echo "$before$name"
    done
}

# Lists the words that are possible in this position; an empty list means a file.
_weft_offers() {                        # COMMAND SUBCOMMAND LAST-WORD WORD OPERANDS OPTIONS LAST-OPERAND
    local command=$1 sub=$2 last=$3 word=$4 operands=$5 options=$6 file=$7 prefix=''
    case $word in --*=*) last=${word%%=*} prefix=$last= word=${word#*=} ;; esac
    case $sub:$last:$word in
    :* | help:*) "$command" --help 2>/dev/null | awk '/^  weft / { print $2 }'; printf '%s\n' help --help --version ;;
    *:--corpus:*) "$command" corpora --names ;;
    lengths:--unit:*) printf '%s\n' bytes words lines length tokens offsets rows ;;
    convert:--dtype:*) printf '%s\n' f32 f16 bf16 f64 ;;
    *:--planner:* | *:--padded:*) _weft_planners "$command" "$word" ;;
    lab:--only:*) _weft_experiments "$command" "$word" ;;
    *)  if [ -n "$prefix" ]; then [ "$sub$prefix" != plan--explain= ] || printf '%s\n' lstm: gru: elman: cifg: mgu: attention:
        elif [[ " $options " == *" $last= "* ]]; then return
        elif [[ $word == -* ]]; then printf '%s\n' $options
        elif [ "$sub" = corpora ]; then "$command" corpora --names
        elif [ "$sub" = plan ] && [ "$operands" -gt 0 ]; then _weft_planners "$command" "$word"
        elif [ "$sub" = show ] && [ "$operands" = 1 ]; then "$command" list --names "${file/#\~/$HOME}" 2>/dev/null; fi ;;
    esac | sed "s/^/$prefix/"
}

_weft() {
    local line=${COMP_LINE:0:COMP_POINT} word words command sub='' last='' operands=0 options='' file='' offer cut i
    word=${line##*[[:blank:]]}
    read -ra words <<<"${line%"$word"}"
    command=${words[0]/#\~/$HOME}
    sub=${words[1]-}
    [ -z "$sub" ] || options=$(_weft_options "$command" "$sub" | xargs)
    for ((i = 2; i < ${#words[@]}; i++)); do
        last=${words[i]}
        case $last in
        --corpus | --corpus=*) operands=1 ;;
        -?*) ;;
        *) [[ " $options " == *" ${words[i - 1]}= "* ]] || { operands=$((operands + 1)); file=$last; } ;;
        esac
    done
    cut=${word%"${word##*[:=]}"}        # bash replaces the text after the last of them
    [[ $COMP_WORDBREAKS == *:* ]] || cut=${word%"${word##*=}"}
    COMPREPLY=()
    while IFS= read -r offer; do
        [[ -z $offer || $offer != "$word"* ]] || COMPREPLY+=("${offer#"$cut"}")
    done < <(_weft_offers "$command" "$sub" "$last" "$word" "$operands" "$options" "$file")
    case ${COMPREPLY[0]-} in
    *[:=]) compopt -o nospace 2>/dev/null ;;
    '') compopt -o default 2>/dev/null ;;
    esac
    return 0
}
complete -F _weft weft
