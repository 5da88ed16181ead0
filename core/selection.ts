// The fields selected by a query.
import { Kind, type GraphQLObjectType, type GraphQLResolveInfo, type SelectionSetNode } from 'graphql';

export type Selection = GraphQLResolveInfo;

/**
 * Tests whether a query selects only these fields, and none with its own resolver. For fields of an object type.
 * Results are cached, since it is called for each row of a page.
 */
export function selectsOnly(names: readonly string[]): (selection: Selection) => boolean {
  const known = new WeakMap<SelectionSetNode, boolean>();
  return ({ fieldNodes, fragments, returnType }) =>
    fieldNodes.every(({ selectionSet }) => {
      const set = selectionSet as SelectionSetNode;
      const before = known.get(set);
      if (before !== undefined) return before;
      const fields = (returnType as GraphQLObjectType).getFields();
      const only = namesOf(set, fragments).every(
        (name) => name === '__typename' || (names.includes(name) && !fields[name]?.resolve),
      );
      known.set(set, only);
      return only;
    });
}

function namesOf(set: SelectionSetNode, fragments: Selection['fragments']): string[] {
  return set.selections.flatMap((node) => {
    if (node.kind === Kind.FIELD) return [node.name.value];
    return namesOf(
      node.kind === Kind.INLINE_FRAGMENT
        ? node.selectionSet
        : (fragments[node.name.value] as { selectionSet: SelectionSetNode }).selectionSet,
      fragments,
    );
  });
}
