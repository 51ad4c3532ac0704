"""One module for each thing that grows: `measure(quick)`."""
