_kgroup_completion() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(_KGROUP_COMPLETE=bash "$1" "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    # A value follows the =; macOS's bash has no compopt.
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}

complete -o default -F _kgroup_completion kgroup
