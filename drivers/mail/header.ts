// The header of a message: its fields as they are, and what the platform reads of them.

export interface HeaderField {
  /** In lower case. */
  name: string;
  /** With its name, folded as it came, without the line end behind it. */
  raw: string;
}

/** @returns null where a line is no field: such a header could mean one thing here and another elsewhere */
export function parseHeader(text: string): HeaderField[] | null {
  const lines = text.split('\r\n');
  const fields: HeaderField[] = [];
  for (const line of lines) {
    const last = fields[fields.length - 1];
    if (/^[ \t]/.test(line)) {
      if (!last) return null;
      last.raw += `\r\n${line}`;
      continue;
    }
    const name = /^([!-9;-~]+)[ \t]*:/.exec(line)?.[1];
    if (!name) return null;
    fields.push({ name: name.toLowerCase(), raw: line });
  }
  return fields;
}

export function formatHeader(fields: readonly HeaderField[]): string {
  return fields.map(({ raw }) => `${raw}\r\n`).join('');
}

/** The value of a field, unfolded. */
export function valueOf({ raw }: HeaderField): string {
  return raw
    .slice(raw.indexOf(':') + 1)
    .replace(/\r\n(?=[ \t])/g, '')
    .trim();
}

export function fieldsNamed(fields: readonly HeaderField[], name: string): HeaderField[] {
  return fields.filter((field) => field.name === name);
}

/**
 * Addresses of a list of mailboxes (RFC 5322 §3.4), without display names, comments and group names.
 * @returns null where it cannot be read for sure: then nobody knows whom a reader would see as the sender
 */
export function mailboxesOf(value: string): string[] | null {
  const plain = withoutCommentsAndQuotes(value);
  if (plain === null) return null;
  const found: string[] = [];
  for (const part of plain.split(/[,;]/)) {
    const text = part.includes(':') && !part.includes('<') ? part.slice(part.indexOf(':') + 1) : part;
    if (!text.trim()) continue;
    const brackets = text.match(/<([^<>]*)>/g) ?? [];
    if (brackets.length > 1 || (brackets.length === 0 && /[<>]/.test(text))) return null;
    const address = brackets.length ? (brackets[0] as string).slice(1, -1).trim() : text.trim();
    if (!/^[^\s@<>"]+@[^\s@<>"]+$/.test(address)) return null;
    found.push(address);
  }
  return found;
}

export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase();
}

/** Quoted strings become a word, comments a space. Null where one of them does not end. */
function withoutCommentsAndQuotes(value: string): string | null {
  let out = '';
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < value.length; at += 1) {
    const char = value[at] as string;
    if ((quoted || depth) && char === '\\') at += 1;
    else if (char === '"' && !depth) {
      quoted = !quoted;
      out += 'q';
    } else if (quoted) continue;
    else if (char === '(') depth += 1;
    else if (char === ')' && depth) depth -= 1;
    else if (!depth) out += char;
  }
  return quoted || depth ? null : out;
}
