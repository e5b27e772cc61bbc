"""``python -m hairkit``: the command line."""

from hairkit.cli import main

if __name__ == "__main__":
    main()
