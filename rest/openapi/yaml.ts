// YAML 1.2 of a JSON value, in block style. A general library takes half of a second for our document, at every start,
// for features that it does not need: anchors, comments, styles. Tests parse this output with such a library.
type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };

// Read as text by every version of YAML: no sign, no ending, no word that means something else.
const PLAIN = /^[A-Za-z][\w .,()'`;/+*=%<>@?!$^-]*(?<! )$/;
const RESERVED_WORDS = /^(?:true|false|yes|no|on|off|null|y|n)$/i;

/** Members that are undefined are left out, as in JSON. */
export function toYaml(value: object): string {
  return block(value as Json, '');
}

function block(value: Json, indent: string): string {
  if (Array.isArray(value)) return value.map((one: Json) => `${indent}- ${inItem(one, indent)}`).join('');
  const members = Object.entries(value as Record<string, Json | undefined>).filter(
    (entry): entry is [string, Json] => entry[1] !== undefined,
  );
  return members
    .map(
      ([key, one]) => `${indent}${scalar(key)}:${isOpen(one) ? `\n${block(one, `${indent}  `)}` : ` ${leaf(one)}\n`}`,
    )
    .join('');
}

// The first member stands beside the dash.
function inItem(value: Json, indent: string): string {
  return isOpen(value) ? block(value, `${indent}  `).slice(indent.length + 2) : `${leaf(value)}\n`;
}

function isOpen(value: Json): boolean {
  return typeof value === 'object' && value !== null && Object.values(value).some((one) => one !== undefined);
}

function leaf(value: Json): string {
  if (typeof value === 'string') return scalar(value);
  return typeof value === 'object' && value !== null ? (Array.isArray(value) ? '[]' : '{}') : String(value);
}

// A string of JSON is one of YAML too (YAML 1.2.2, section 5.7).
function scalar(text: string): string {
  return PLAIN.test(text) && !RESERVED_WORDS.test(text) ? text : JSON.stringify(text);
}
