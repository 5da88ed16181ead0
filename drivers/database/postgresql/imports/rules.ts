// What becomes of each statement of a dump: most are run as they are, as the owner of the database. What only a
// superuser may do, or what is of the server that the dump is of, is left out, and said.
import type { DumpStatement } from '../../imports/sql_reader';

export type Ruling =
  /** `isCareful`: what a failure changes is taken back, so that the import can go on without it. */
  | { do: 'run'; text: string; isCareful: boolean }
  | { do: 'copy'; text: string; table: string }
  | { do: 'insert'; text: string; table: string }
  | { do: 'skip'; missing?: { kind: string; name: string; reason: string } }
  | { do: 'extension'; name: string; schema: string }
  | { do: 'encoding'; name: string }
  | { do: 'database'; name: string }
  | { do: 'refuse'; reason: string };

const NAME = String.raw`(?:"(?:[^"]|"")*"|[A-Za-z_\x80-\xff][\w$\x80-\xff]*)`;
const QUALIFIED = String.raw`${NAME}(?:\s*\.\s*${NAME})?`;
const named = (pattern: string): RegExp =>
  new RegExp(pattern.replaceAll('NAMES', QUALIFIED).replaceAll('NAME', NAME), 'i');

const ROLE = 'Users of a database are made with the API; what is imported belongs to its owner.';
const OWNER = 'What is imported belongs to the owner of the database.';
const PRIVILEGES = 'The roles that it names are not those of this database.';
const SERVER = 'It concerns the whole server.';
const SUPERUSER = 'It needs a superuser.';

const COPY = named(String.raw`^copy\s+(NAMES)\s*(\([^)]*\))?\s+from\s+stdin\b`);
const INSERT = named(String.raw`^insert\s+into\s+(?:only\s+)?(NAMES)`);
const EXTENSION = named(
  String.raw`^create\s+extension\s+(?:if\s+not\s+exists\s+)?(NAME)(?:\s+with\b)?(?:\s+schema\s+(NAME))?`,
);
const CLIENT_ENCODING = /^set\s+client_encoding\s*(?:=|to)\s*'?([\w-]+)'?$/i;
const TABLESPACE = named(String.raw`\s+(?:using\s+index\s+)?tablespace\s+(NAME)\s*$`);

/** Each with the kind and the reason of what is left out; without them it is nothing that a user would miss. */
const SKIPPED: readonly [RegExp, string?, string?][] = [
  // The import is one transaction.
  [/^(begin|commit|end|rollback|abort|start\s+transaction|savepoint|release|prepare\s+transaction)\b/i],
  [/^(vacuum|analyze|checkpoint|discard|listen|unlisten|cluster\b(?!ed))/i],
  [/^(create|alter|comment\s+on|drop)\s+schema\s+(if\s+(not\s+)?exists\s+)?"?public"?(\s|$)/i],
  [/^(comment\s+on|alter|drop)\s+extension\b/i],
  [/^(comment\s+on|alter|security\s+label\s+on|drop)\s+database\b/i, 'database_setting', SERVER],
  [
    named(
      String.raw`^(?:create|alter|drop|comment\s+on)\s+(?:role|user|group)\s+(?!mapping\b)(?:if\s+exists\s+)?(NAME)`,
    ),
    'role',
    ROLE,
  ],
  [
    named(
      String.raw`^(?:set\s+(?:local\s+|session\s+)?(?:role|session\s+authorization)\s+'?|reset\s+(?:role|session` +
        String.raw`\s+authorization))(NAME)?`,
    ),
    'role',
    OWNER,
  ],
  [named(String.raw`^(?:create|alter|drop|comment\s+on)\s+tablespace\s+(NAME)`), 'tablespace', SERVER],
  [
    named(String.raw`^set\s+default_tablespace\s*(?:=|to)\s*'?(NAME)`),
    'tablespace',
    'All data are on the disk of the database.',
  ],
  [/^set\s+default_tablespace\b/i],
  [named(String.raw`^alter\s[^]*\sowner\s+to\s+(NAME)\s*$`), 'owner', OWNER],
  [
    named(
      String.raw`^(?:grant|revoke)\b[^]*\s(?:to|from)\s+(?:group\s+)?(NAME)(?:\s*,\s*NAME)*(?:\s+with\s+grant` +
        String.raw`\s+option)?(?:\s+granted\s+by\s+NAME)?\s*$`,
    ),
    'privileges',
    PRIVILEGES,
  ],
  [named(String.raw`^alter\s+default\s+privileges\b[^]*\s(?:to|from)\s+(NAME)`), 'privileges', PRIVILEGES],
  [
    named(String.raw`^(?:create|alter|drop|comment\s+on)\s+(?:publication|subscription)\s+(NAME)`),
    'replication',
    SERVER,
  ],
  [named(String.raw`^(?:create|alter|drop|comment\s+on)\s+event\s+trigger\s+(NAME)`), 'event_trigger', SUPERUSER],
  [
    named(
      String.raw`^(?:create|alter|drop|comment\s+on)\s+(?:server|foreign\s+data\s+wrapper|foreign\s+table|user` +
        String.raw`\s+mapping\s+for|import\s+foreign\s+schema)\s+(?:if\s+not\s+exists\s+)?(NAMES)`,
    ),
    'foreign_data',
    'Databases do not connect to other servers.',
  ],
  [
    named(
      String.raw`^(?:create|alter|drop|comment\s+on)\s+(?:or\s+replace\s+)?(?:trusted\s+)?(?:procedural\s+)?language` +
        String.raw`\s+(NAME)`,
    ),
    'language',
    SUPERUSER,
  ],
  [/^alter\s+system\b/i, 'server_setting', SERVER],
  [/^security\s+label\b/i],
];

/** Commands of psql that dumps have, and that say nothing about the data. */
const CLIENT_SKIPPED = /^\\(restrict|unrestrict|set|unset|pset|timing|echo|qecho|warn|encoding|x|t|q)\b/;
const CONNECT = /^\\c(?:onnect)?\s+(?:-reuse-previous=\S+\s+)?(?:"?dbname='?)?["']?([^"'\s;]+)/;

export function rulingOf({ kind, text }: DumpStatement): Ruling {
  if (kind === 'client') return rulingOfClientCommand(text);
  const head = withoutComments(text);
  if (head === '') return { do: 'skip' };
  const database = named(String.raw`^create\s+database\s+(NAME)`).exec(head) ?? /^drop\s+database\b/i.exec(head);
  if (database) return { do: 'skip' };
  const [, extension, schema = 'public'] = EXTENSION.exec(head) ?? [];
  if (extension !== undefined) return { do: 'extension', name: unquoted(extension), schema: unquoted(schema) };
  const encoding = CLIENT_ENCODING.exec(head)?.[1];
  if (encoding !== undefined) return { do: 'encoding', name: encoding };
  for (const [pattern, what, reason] of SKIPPED) {
    const found = pattern.exec(head);
    if (!found) continue;
    if (what === undefined || reason === undefined) return { do: 'skip' };
    const name = found[1] === undefined ? head.slice(0, 60) : unquoted(found[1]);
    return isTrivial(what, name) ? { do: 'skip' } : { do: 'skip', missing: { kind: what, name, reason } };
  }
  const copy = COPY.exec(head);
  if (copy) return { do: 'copy', text: head, table: copy[1] as string };
  if (/^copy\b/i.test(head))
    return { do: 'refuse', reason: 'COPY reads or writes a file or a program of the server, which nobody may.' };
  const insert = INSERT.exec(head);
  if (insert) return { do: 'insert', text, table: insert[1] as string };
  return { do: 'run', text: withoutTablespace(head, text), isCareful: !/^(select|with|update|delete)\b/i.test(head) };
}

function rulingOfClientCommand(text: string): Ruling {
  const connect = CONNECT.exec(text)?.[1];
  if (connect !== undefined) return { do: 'database', name: connect };
  if (CLIENT_SKIPPED.test(text)) return { do: 'skip' };
  const [command] = text.split(/\s/);
  return { do: 'refuse', reason: `${command} is a command of psql. Only SQL is run.` };
}

/** The name of a table space that a statement ends with, which is left out; null where there is none. */
export function tablespaceOf(text: string): string | null {
  const found = TABLESPACE.exec(text)?.[1];
  return found === undefined ? null : unquoted(found);
}

function withoutTablespace(head: string, text: string): string {
  return /^create\s+(unlogged\s+)?(unique\s+)?(table|index|materialized\s+view)\b/i.test(head)
    ? text.replace(TABLESPACE, '')
    : text;
}

/** Of a statement, without the comments that come before it. */
function withoutComments(text: string): string {
  return text.replace(/^(?:\s+|--[^\n]*(?:\n|$)|\/\*(?:[^*]|\*(?!\/))*\*\/)+/, '');
}

function unquoted(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase();
}

/** Rights of everybody, and the owner that every dump resets to. */
function isTrivial(kind: string, name: string): boolean {
  return (kind === 'privileges' && name === 'public') || (kind === 'role' && /^(default|none)$/.test(name));
}
