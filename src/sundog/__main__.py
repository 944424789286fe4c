"""`python -m sundog`: the same as `sundog`."""

from sundog.cli.main import main

if __name__ == "__main__":
    main()
