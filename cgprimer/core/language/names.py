"""The names in a syntax tree, and trees in the places of names."""

from collections.abc import Mapping

from cgprimer.core.language.syntax import Apply, Expression, Name, fold, postorder


def names_in(tree: Expression) -> dict[str, None]:
    """The names that stand in a tree, in their order."""
    return {node.name: None for node in postorder(tree) if isinstance(node, Name)}


def replaced(tree: Expression, by_name: Mapping[str, Expression]) -> Expression:
    """A tree with others in the places of names; equal ones are shared."""
    return fold(
        tree,
        lambda leaf: by_name.get(leaf.name, leaf) if isinstance(leaf, Name) else leaf,
        lambda name, arguments: Apply(name, tuple(arguments)),
    )
