// The syntax tree of a source, for tests that look at what is written: https://github.com/estree/estree.

export interface SyntaxNode {
  type: string;
  /** Places in the text. */
  start: number;
  end: number;
  [member: string]: unknown;
}

export interface Syntax {
  tree: SyntaxNode;
  /** The nodes right below a node, in the order of the text. */
  childrenOf(node: SyntaxNode): { member: string; child: SyntaxNode }[];
}

export async function syntaxOf(file: string, text: string): Promise<Syntax> {
  const { parseSync, visitorKeys } = await import('oxc-parser');
  const { program, errors } = parseSync(file, text);
  if (errors[0]) throw new Error(`${file}: ${errors[0].message}`);
  return {
    tree: program as unknown as SyntaxNode,
    childrenOf: (node) =>
      (visitorKeys[node.type] ?? []).flatMap((member) =>
        [node[member]].flat().flatMap((child) => (child ? [{ member, child: child as SyntaxNode }] : [])),
      ),
  };
}
