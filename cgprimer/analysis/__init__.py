"""What lectures and homework call: traces, comparisons, and the reference they are held against."""
