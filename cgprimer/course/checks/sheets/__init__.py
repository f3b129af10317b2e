"""Problem sheets: questions as data, worked out as tables; answers, and slips in them."""
