// Links of an HTML text, found by a parser and replaced in place: every other byte stays as it was.
import type { DefaultTreeAdapterTypes } from 'parse5' with { 'resolution-mode': 'import' };

export interface Replacements {
  /** The address that a link gets; the same where it stays. */
  link(url: string): string;
  /** Put in front of the end of the body; empty for none. */
  ending: string;
}

type Node = DefaultTreeAdapterTypes.Node;

/** Links of `a` and `area` over http and https. */
export async function replaceLinks(html: string, { link, ending }: Replacements): Promise<string> {
  const { parse } = await import('parse5');
  const document = parse(html, { sourceCodeLocationInfo: true });
  const edits: { from: number; to: number; text: string }[] = [];
  let bodyEnd = html.length;
  for (const stack: Node[] = [document]; stack.length;) {
    const node = stack.pop() as Node;
    if ('childNodes' in node) stack.push(...node.childNodes);
    if (!('tagName' in node)) continue;
    const place = node.sourceCodeLocation;
    if (node.tagName === 'body' && place?.endTag) bodyEnd = place.endTag.startOffset;
    const url = node.attrs.find(({ name }) => name === 'href')?.value.trim() ?? '';
    const at = place?.attrs?.href;
    if (!at || !['a', 'area'].includes(node.tagName) || !/^https?:\/\//i.test(url)) continue;
    const replaced = link(url);
    if (replaced !== url)
      edits.push({ from: at.startOffset, to: at.endOffset, text: `href="${escapeAttribute(replaced)}"` });
  }
  if (ending) edits.push({ from: bodyEnd, to: bodyEnd, text: ending });
  return edits
    .sort((a, b) => b.from - a.from)
    .reduce((text, { from, to, text: put }) => text.slice(0, from) + put + text.slice(to), html);
}

function escapeAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
}
