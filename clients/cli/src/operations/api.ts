// `svc api <operation>`: every operation of the API, made from its OpenAPI document.
import { buildRouteMap, type Command, type RouteMap } from '@stricli/core';
import { parseInteger, sessionCommand, several, text, toggle, duration, type Shell } from '../command';
import { EXIT, Failure, ProblemFailure, usageFailure } from '../failure';
import { followEvents } from '../follow';
import { printRows, printOne, printJson, writeLine, type Columns, type Row } from '../output/print';
import { isTerminal } from '../output/terminal';
import { describeCall, type Call, type Session } from '../session';
import { buildBody } from './body';
import { formatCurl } from './curl';
import { allOperations, type Operation, type Value } from './table';

interface ApiFlags {
  readonly data?: string | undefined;
  readonly field?: readonly string[] | undefined;
  readonly json?: boolean | undefined;
  readonly curl?: boolean | undefined;
  readonly showToken?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
  readonly wait?: number | undefined;
  readonly ifMatch?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  readonly follow?: boolean | undefined;
}

/** The route `api`. Its commands are made when somebody asks for one. */
export function apiRoutes(): RouteMap<Shell> {
  const routes = Object.fromEntries(allOperations().map((operation) => [operation.id, operationCommand(operation)]));
  return buildRouteMap({ routes, docs: { brief: 'Call any operation of the API' } });
}

function operationCommand(operation: Operation): Command<Shell> {
  const { path_parameters = [], query = [] } = operation;
  const flags = Object.fromEntries(query.map((value) => [toCamelCase(value.name), flagOf(value)]));
  const fromLink = isLinkable(operation);
  return sessionCommand({
    brief: operation.summary,
    text: describe(operation),
    target: operation.project ? 'project' : 'server',
    output: false,
    flags: { ...flags, ...requestFlags(operation) } as never,
    aliases: operation.body ? ({ d: 'data', f: 'field' } as never) : {},
    args: {
      kind: 'tuple',
      parameters: path_parameters.map((value, index) => ({
        parse: String,
        placeholder: value.name,
        brief: value.description ?? value.name,
        ...((fromLink || index > 0) && fromLink && { optional: true }),
      })),
    } as never,
    run: (session: Session, given: ApiFlags & Row, ...ids: (string | undefined)[]) =>
      callOperation(session, operation, given, ids),
  } as never);
}

/** Whether the linked folder says what the first parameter of the path is. */
function isLinkable({ path }: Operation): boolean {
  return /^\/v2\/(applications|projects)\/\{id\}/.test(path);
}

function requestFlags(operation: Operation): object {
  const { method, body, wait, dry_run, if_match, idempotent, stream } = operation;
  return {
    ...(body && { data: text('Body as JSON, @file, or - for standard input', 'json') }),
    field: several(
      body ? 'Field of the body (name=value, name=@file), or field to print' : 'Field to print',
      'name[=value]',
    ),
    ...(wait && { wait: duration('Wait until the work has settled, at most 60s (Prefer: wait)') }),
    ...(dry_run && { dryRun: toggle('Check and answer, but change nothing (Dry-Run)') }),
    ...(if_match && method !== 'GET' && { ifMatch: text('Change only this version (If-Match)', 'etag') }),
    ...(idempotent && { idempotencyKey: text('Key of the request (default: a random one)', 'key') }),
    ...(stream && { follow: toggle('Follow the stream of new entries') }),
    curl: toggle('Print the request as a curl command, and do not send it'),
    showToken: toggle('With --curl: show the token'),
    json: toggle('Print JSON on a terminal too'),
  };
}

function flagOf(value: Value): object {
  const brief =
    value.description
      ?.split(/(?<=\.) /)[0]
      ?.replace(/\.$/, '')
      .replace(/`/g, '') ?? value.name;
  const bounds = value.min !== undefined && value.max !== undefined ? ` (${value.min}–${value.max})` : '';
  const base = { brief: `${brief}${bounds}`, optional: !value.required };
  if (value.type === 'boolean') return { ...base, kind: 'boolean' };
  if (value.enum && value.type !== 'array') return { ...base, kind: 'enum', values: value.enum };
  if (value.type === 'array')
    return { ...base, kind: value.enum ? 'enum' : 'parsed', values: value.enum, parse: String, variadic: ',' };
  const { min = -(2 ** 31), max = 2 ** 31 - 1 } = value;
  const parse = value.type === 'integer' ? (given: string) => parseInteger(given, min, max) : String;
  return { ...base, kind: 'parsed', parse, placeholder: value.type === 'integer' ? 'n' : 'text' };
}

function describe(operation: Operation): string {
  const { body = [] } = operation;
  const names = body.map((value) => {
    const type =
      value.enum && value.type !== 'array' ? value.enum.join('|') : value.items ? `list of ${value.items}` : value.type;
    return `  ${value.name}  ${type}${value.required ? ', required' : ''}  ${value.description ?? ''}`.trimEnd();
  });
  return [
    ...(operation.description ? [operation.description, ''] : []),
    `${operation.method} ${operation.path}${operation.open ? '' : `, scope ${operation.scope}`}`,
    ...(names.length ? ['', 'Fields of the body:', ...names] : []),
  ].join('\n');
}

async function callOperation(
  session: Session,
  operation: Operation,
  flags: ApiFlags & Row,
  ids: readonly (string | undefined)[],
): Promise<void> {
  const path = fillPath(
    session,
    operation,
    ids.filter((id) => id !== undefined),
  );
  const bodyFields = (flags.field ?? []).filter((one) => one.includes('='));
  if (bodyFields.length && !operation.body) throw usageFailure(`${operation.id} takes no body.`);
  const [shown, second] = (flags.field ?? []).filter((one) => !one.includes('='));
  if (second !== undefined) throw usageFailure('One field can be printed at a time.');
  const call: Call = {
    query: queryOf(operation, flags),
    body: operation.body ? await buildBody(operation, flags.data, bodyFields) : undefined,
    headers: headersOf(flags),
    key: operation.idempotent && !flags.dryRun ? 'with_key' : 'without_key',
    ...(!operation.project && { project: 'none' as const }),
  };
  if (flags.curl) return printCurl(session, operation, path, call, flags);
  if (flags.follow) return followEvents(session, path, call.query, (row) => writeLine(JSON.stringify(row)));
  const output = { json: flags.json || !isTerminal(), field: shown };
  await explainMissing(session, operation, async () => {
    if (isPaged(operation, flags)) printList(operation, await session.list(path, call.query, call), output);
    else await printAnswer(session, operation, path, call, output);
  });
}

async function printAnswer(
  session: Session,
  operation: Operation,
  path: string,
  call: Call,
  output: { json: boolean; field: string | undefined },
): Promise<void> {
  const { text: answer } = await session.send(operation.method, path, call);
  if (!answer) return;
  const value = JSON.parse(answer) as Row;
  if (Array.isArray(value.data) && 'next_cursor' in value && output.field === undefined && !output.json)
    return printList(operation, value.data as Row[], output);
  if (output.field !== undefined || output.json) return printOne(value, output);
  printOne(value, output, Object.fromEntries(Object.keys(value).map((name) => [name, name])));
}

/** A list as the API has it where JSON is printed, so that programs read the same as from one page. */
function printList(
  operation: Operation,
  rows: readonly Row[],
  output: { json: boolean; field: string | undefined },
): void {
  if (output.field === undefined && output.json) return printJson({ data: rows, next_cursor: null });
  const isLog = operation.stream === true;
  const preferred = isLog
    ? ['timestamp', 'level', 'message']
    : ['name', 'hostname', 'key', 'type', 'region', 'status', 'created_at', 'id'];
  const [first = {}] = rows;
  const names = preferred.filter((name) => name in first);
  const shown =
    names.length > 1
      ? names
      : Object.keys(first)
          .filter((name) => typeof first[name] !== 'object')
          .slice(0, 5);
  printRows(rows, Object.fromEntries(shown.map((name) => [name.toUpperCase(), name])) as Columns, output);
}

/** Lists page by themselves, except where a page is asked for, and logs, which have no end worth waiting for. */
function isPaged({ query = [], method, stream }: Operation, flags: Row): boolean {
  if (method !== 'GET' || stream || flags.cursor !== undefined || flags.limit !== undefined) return false;
  return query.some(({ name }) => name === 'cursor');
}

function fillPath(session: Session, operation: Operation, given: readonly string[]): string {
  const { path_parameters = [], path } = operation;
  const ids = [...given];
  if (ids.length === path_parameters.length - 1 && isLinkable(operation)) {
    const linked = path.startsWith('/v2/projects/') ? session.link?.project_id : session.link?.application_id;
    if (linked) ids.unshift(linked);
  }
  const missing = path_parameters[ids.length];
  if (missing) throw usageFailure(`${operation.id} needs {${missing.name}}: ${missing.description ?? 'an id.'}`);
  let index = 0;
  return path.replace(/\{\w+\}/g, () => encodeURIComponent(ids[index++] as string));
}

function queryOf({ query = [] }: Operation, flags: Row): Call['query'] {
  return Object.fromEntries(
    query.map(({ name }) => {
      const value = flags[toCamelCase(name)];
      return [name, Array.isArray(value) ? value.join(',') : (value as string | undefined)];
    }),
  );
}

function headersOf(flags: ApiFlags): Record<string, string> {
  return {
    ...(flags.dryRun && { 'Dry-Run': 'true' }),
    ...(flags.wait !== undefined && { Prefer: `wait=${Math.min(60, flags.wait)}` }),
    ...(flags.ifMatch !== undefined && { 'If-Match': flags.ifMatch }),
    ...(flags.idempotencyKey !== undefined && { 'Idempotency-Key': flags.idempotencyKey }),
  };
}

async function printCurl(
  session: Session,
  { method }: Operation,
  path: string,
  call: Call,
  { showToken }: ApiFlags,
): Promise<void> {
  const { url, headers } = await describeCall(session, path, call);
  const body = call.body === undefined ? undefined : JSON.stringify(call.body);
  writeLine(formatCurl({ method, url, headers, body }, showToken ? 'shown' : 'hidden'));
}

/** A 404 of an older server, which lacks the operation, is not one of a missing resource. */
async function explainMissing(session: Session, { id }: Operation, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const code = error instanceof ProblemFailure ? error.problem.code : undefined;
    if (!code || !/^(route_not_found|method_not_allowed|operation_not_found)$/.test(code)) throw error;
    throw new Failure(`${session.server} has no operation ${id}. It is older than this svc.`, EXIT.failed);
  }
}

const toCamelCase = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** `svc api --list`. */
export function printOperations(flags: { json: boolean }): void {
  const rows = allOperations().map(({ id, method, path, group, summary, scope, extension }) => ({
    ...{ id, method, path, group, scope, summary },
    extension: extension === true,
  }));
  printRows(rows, { OPERATION: 'id', GROUP: 'group', SUMMARY: 'summary' }, flags);
}
