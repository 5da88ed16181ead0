// The header of a message: its raw fields, and their parsed values.

export interface HeaderField {
  /** In lower case. */
  name: string;
  /** Including the name, folded as received, without the final line end. */
  raw: string;
}

/** @returns null where a line is not a field: programs would interpret such a header differently */
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
