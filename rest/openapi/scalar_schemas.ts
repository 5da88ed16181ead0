// JSON Schemas of @spec's format names and of the scalars of the schema, each with an example.
// The patterns describe; core/formats/formats.ts decides. Where input is folded or trimmed first, the pattern takes it
// unfolded.
import type { FormatName } from '../../core/formats/formats';
import { specOf, type Spec } from '../../contract/spec';
import type { DocumentBuilder } from './builder';
import type { Schema } from './document';

export interface SchemaWithExample {
  schema: Schema;
  example: unknown;
}

// Characters that no text of a format has (FORBIDDEN of core/formats/formats.ts).
const CONTROLS = '\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029';
const CHARACTER = `[^${CONTROLS}]`;
// Names beyond ASCII are taken too and folded to punycode, with the full stops of their scripts (RFC 3490 §3.1).
const DOT = '[.\\u3002\\uff0e\\uff61]';
const HOST = `[^\\s.:/@${CONTROLS}]+(?:${DOT}[^\\s.:/@${CONTROLS}]+)+${DOT}?`;
const ZONE = `[^\\s.:@${CONTROLS}]+(?:${DOT}[^\\s.:/@${CONTROLS}]+)+${DOT}?`;

const CRON_FIELD = '[0-9A-Za-z*,/#-]+';

const formatSchemas: Record<FormatName | 'date-time', SchemaWithExample> = {
  slug: { schema: { minLength: 3, maxLength: 40, pattern: '^[a-z](?:-?[a-z0-9])+$' }, example: 'my-name' },
  label: {
    schema: { minLength: 1, maxLength: 100, pattern: `^${CHARACTER}*[^\\s${CONTROLS}]${CHARACTER}*$` },
    example: 'My name',
  },
  single_line: { schema: { pattern: `^${CHARACTER}*$` }, example: 'One line of text' },
  hostname: { schema: { maxLength: 254, pattern: `^${HOST}$` }, example: 'www.example.com' },
  wildcard_hostname: { schema: { maxLength: 254, pattern: `^(?:\\*\\.)?${HOST}$` }, example: '*.example.com' },
  zone_name: { schema: { maxLength: 254, pattern: `^${ZONE}$` }, example: 'example.com' },
  cidr: { schema: { pattern: '^[0-9A-Fa-f:.]+(?:/[0-9]{1,3})?$' }, example: '192.0.2.0/24' },
  url: {
    schema: { format: 'uri', pattern: `^[Hh][Tt][Tt][Pp][Ss]?://${CHARACTER}*$` },
    example: 'https://www.example.com/',
  },
  https_url: {
    schema: { format: 'uri', pattern: `^[Hh][Tt][Tt][Pp][Ss]://${CHARACTER}*$` },
    example: 'https://www.example.com/',
  },
  email: { schema: { format: 'email', maxLength: 254 }, example: 'ada@example.com' },
  date: { schema: { format: 'date' }, example: '2026-01-31' },
  timestamp: { schema: { format: 'date-time' }, example: '2026-01-31T09:30:00.000Z' },
  'date-time': { schema: { format: 'date-time' }, example: '2026-01-31T09:30:00.000Z' },
  env_key: { schema: { minLength: 1, maxLength: 128, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }, example: 'LOG_LEVEL' },
  mount_path: { schema: { maxLength: 255, pattern: `^/[^/${CONTROLS}]${CHARACTER}*$` }, example: '/data' },
  relative_path: { schema: { pattern: `^(?!/)${CHARACTER}*$` }, example: 'src/server' },
  git_url: {
    schema: { pattern: `^(?:[a-z][a-z0-9+.-]*://|[^\\s@/:${CONTROLS}]+@[^\\s:/${CONTROLS}]+:)[^\\s${CONTROLS}]+$` },
    example: 'https://git.example.com/team/shop.git',
  },
  oci_reference: { schema: { pattern: '^[!-~]+$' }, example: 'registry.example.com/team/shop:1.4.2' },
  commit_sha: { schema: { pattern: '^[0-9A-Fa-f]{7,64}$' }, example: '9fceb02d0ae598e95dc970b74767f19372d61af8' },
  cron: { schema: { pattern: `^ *(?:@[A-Za-z]+|${CRON_FIELD}(?: +${CRON_FIELD}){4}) *$` }, example: '30 2 * * *' },
  time_zone: { schema: { pattern: '^[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*$' }, example: 'Europe/Berlin' },
};

const scalarSchemas: Record<string, SchemaWithExample> = {
  ID: { schema: { type: 'string' }, example: undefined },
  String: { schema: { type: 'string' }, example: 'text' },
  Int: { schema: { type: 'integer', format: 'int32' }, example: 1 },
  Float: { schema: { type: 'number', format: 'double' }, example: 1 },
  Boolean: { schema: { type: 'boolean' }, example: false },
  ByteCount: { schema: { type: 'integer', format: 'int64' }, example: 1048576 },
};

/** The form of a scalar by its name. A scalar that only the SDL knows is a string with its @spec. */
export function scalarSchema(builder: DocumentBuilder, name: string): SchemaWithExample {
  const type = builder.schema.getType(name);
  const spec = type ? specOf(builder.schema, type) : {};
  const form = scalarSchemas[name] ?? { schema: { type: 'string' }, example: undefined };
  return { schema: { ...form.schema, ...leafBounds(spec) }, example: exampleIn(spec) ?? form.example };
}

/** The form of a format name. @throws Error on an unknown name */
export function formatSchema(name: string): SchemaWithExample {
  const form = formatSchemas[name as FormatName] as SchemaWithExample | undefined;
  if (!form) throw new Error(`schema: unknown format "${name}" in @spec`);
  return form;
}

/** The bounds of one value. A page size above the largest is taken as the largest, so the largest is its bound here. */
export function leafBounds(spec: Spec): Schema {
  const named = spec.format ? formatSchema(spec.format) : undefined;
  const bounds: Schema = {
    ...named?.schema,
    minimum: spec.page === undefined ? spec.min : 1,
    maximum: spec.maxPage ?? spec.max,
    minLength: spec.minLength ?? named?.schema.minLength,
    maxLength: spec.maxLength ?? named?.schema.maxLength,
    pattern: spec.pattern ?? named?.schema.pattern,
    enum: spec.sorts?.flatMap((key) => [key, `-${key}`]),
    default: spec.page,
  };
  return withoutUndefined(bounds);
}

/** The bounds of a list, not of its entries. */
export function listBounds(spec: Spec): Schema {
  return withoutUndefined({ minItems: spec.minItems, maxItems: spec.maxItems, uniqueItems: spec.unique });
}

/** The example that a @spec gives, undefined where it gives none. */
export function exampleIn(spec: Spec): unknown {
  return spec.example === undefined ? undefined : (JSON.parse(spec.example) as unknown);
}

/** The same object without its undefined members. */
export function withoutUndefined<T extends object>(values: T): T {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T;
}
