"""The command line as ``python -m evergrow``."""

from evergrow.cli import main

if __name__ == "__main__":
    main(prog_name="evergrow")
