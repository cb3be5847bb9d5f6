"""`python -m kgroup` is `kgroup`."""

from kgroup.cli.app import main

if __name__ == "__main__":
    main()
