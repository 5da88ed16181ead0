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
