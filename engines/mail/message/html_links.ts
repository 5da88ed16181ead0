// Links in HTML, located by a parser and replaced in place: all other bytes are unchanged.
import type { DefaultTreeAdapterTypes } from 'parse5' with { 'resolution-mode': 'import' };

export interface Replacements {
  /** Returns the new URL of a link, or the same one. */
  link(url: string): string;
  /** Inserted before the end of the body; may be empty. */
  ending: string;
}

type Node = DefaultTreeAdapterTypes.Node;

/** Replaces the http and https links of `a` and `area`. */
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
