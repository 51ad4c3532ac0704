"""One module for each thing that is measured and promised: `measure(rounds, quick)`."""
