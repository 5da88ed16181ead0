// The XML subset of S3. Parses elements, text, predefined entities and CDATA; no DOCTYPE, so no custom entities.
import { S3Error } from './errors';

const XSI = 'http://www.w3.org/2001/XMLSchema-instance';
const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';
const ESCAPES: Record<string, string> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;', '\r': '&#xD;' };
const ENTITIES: ReadonlyMap<string, string> = new Map(
  Object.entries({ lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }),
);
const DEPTH_MAX = 16;
const ELEMENTS_MAX = 60_000;

/** Content of an element: text, an element, several elements of one name, or nothing. */
type XmlValue = string | number | boolean | null | undefined | XmlElements | readonly (string | XmlElements)[];
export interface XmlElements {
  [name: string]: XmlValue;
}

export function xmlDocument(root: string, content: XmlElements): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${root} xmlns="${NAMESPACE}">${elements(content)}</${root}>`;
}

/** Error responses have no namespace. */
export function xmlError(content: XmlElements): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error>${elements(content)}</Error>`;
}

function elements(content: XmlElements): string {
  let text = '';
  for (const [name, value] of Object.entries(content)) {
    if (value === null || value === undefined) continue;
    for (const one of Array.isArray(value) ? (value as readonly (string | XmlElements)[]) : [value])
      text += element(name, one as string | XmlElements);
  }
  return text;
}

/** `xsi:type` is an attribute of the element. */
function element(name: string, content: string | number | boolean | XmlElements): string {
  if (typeof content !== 'object') return `<${name}>${escape(String(content))}</${name}>`;
  const { 'xsi:type': type, ...children } = content;
  const attributes = typeof type === 'string' ? ` xmlns:xsi="${XSI}" xsi:type="${escape(type)}"` : '';
  return `<${name}${attributes}>${elements(children)}</${name}>`;
}

/** Characters that XML cannot represent become a question mark: clients use encoding-type=url for them. */
function escape(text: string): string {
  return text
    .replace(/[<>&"\r]/g, (c) => ESCAPES[c] as string)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '?');
}

export interface XmlNode {
  name: string;
  text: string;
  children: XmlNode[];
}

/** @throws S3Error MalformedXML */
export function parseXml(text: string, root: string): XmlNode {
  const document: XmlNode = { name: '', text: '', children: [] };
  const stack = [document];
  const token =
    /<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<!\[CDATA\[([\s\S]*?)\]\]>|<(\/?)([\w.:-]+)((?:\s[^<>]*?)?)(\/?)>|([^<]+)/gy;
  let count = 0;
  for (let end = 0; end < text.length; end = token.lastIndex) {
    token.lastIndex = end;
    const match = token.exec(text);
    if (!match || stack.length > DEPTH_MAX || (count += 1) > ELEMENTS_MAX * 3) throw new S3Error('MalformedXML');
    const [, cdata, close, name, , empty, plain] = match;
    const top = stack[stack.length - 1] as XmlNode;
    if (cdata !== undefined) top.text += cdata;
    else if (plain !== undefined) top.text += decodeEntities(plain);
    else if (name !== undefined) step(stack, top, name.replace(/^.*:/, ''), Boolean(close), Boolean(empty));
  }
  const [node, ...more] = document.children;
  if (stack.length !== 1 || !node || more.length || node.name !== root) throw new S3Error('MalformedXML');
  return node;
}

function step(stack: XmlNode[], top: XmlNode, name: string, isEnd: boolean, isEmpty: boolean): void {
  if (isEnd) {
    if (stack.length < 2 || top.name !== name) throw new S3Error('MalformedXML');
    stack.pop();
    return;
  }
  const node: XmlNode = { name, text: '', children: [] };
  top.children.push(node);
  if (!isEmpty) stack.push(node);
}

function decodeEntities(text: string): string {
  return text.replace(/&(#x[0-9a-fA-F]{1,6}|#\d{1,7}|\w{1,8});?/g, (whole, name: string) => {
    if (!whole.endsWith(';')) throw new S3Error('MalformedXML');
    if (!name.startsWith('#')) return ENTITIES.get(name) ?? malformed();
    const code = name.startsWith('#x') ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
      ? String.fromCodePoint(code)
      : malformed();
  });
}

function malformed(): never {
  throw new S3Error('MalformedXML');
}

export function childElements(node: XmlNode, name: string): XmlNode[] {
  return node.children.filter((child) => child.name === name);
}

export function childElement(node: XmlNode | undefined, name: string): XmlNode | undefined {
  return node?.children.find((child) => child.name === name);
}

export function elementText(node: XmlNode | undefined, name: string): string | undefined {
  return childElement(node, name)?.text;
}

/**
 * Rejects unsupported and repeated members.
 * @param lists members that may be repeated
 * @throws S3Error NotImplemented, MalformedXML
 */
export function requireMembers(node: XmlNode, names: readonly string[], lists: readonly string[] = []): void {
  const seen = new Set<string>();
  for (const { name } of node.children) {
    if (!names.includes(name)) throw new S3Error('NotImplemented', `${node.name} with ${name} is not offered.`);
    if (seen.has(name) && !lists.includes(name))
      throw new S3Error('MalformedXML', `${node.name} has more than one ${name}.`);
    seen.add(name);
  }
}
