function __kgroup_complete
    set -l line (commandline -cp | string collect)
    set -l found (_KGROUP_COMPLETE=fish command kgroup "$line" 2>/dev/null | string split0)
    if test (count $found) -gt 0
        printf '%s\0' $found | string split0
    else
        __fish_complete_path (commandline -ct)
    end
end

complete -c kgroup -f -a '(__kgroup_complete)'
