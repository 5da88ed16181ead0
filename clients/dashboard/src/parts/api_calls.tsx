// "As API call": what the page has asked, as GraphQL and, where there is an operation for it, as REST.
import { useState } from 'preact/hooks';
import { calls, type Call } from '../api/calls';
import { CopyButton } from './copy';

export function ApiCalls({ projectId, command }: { projectId: string | undefined; command: string | undefined }) {
  const [table, setTable] = useState<Operations | null>(null);
  const open = async (isOpen: boolean): Promise<void> => {
    if (isOpen && !table) setTable((await import('#operations')).default);
  };
  return (
    <details class="api-calls" onToggle={(event) => void open(event.currentTarget.open)}>
      <summary>As API call</summary>
      {command && <CallText label="command line" text={command} />}
      {table &&
        calls.value.map((call, index) => <OneCall key={index} call={call} table={table} projectId={projectId} />)}
      <p>
        <code>$KEY</code> is an API key
        {table && calls.value.some((call) => isOfSession(call, table)) && (
          <>
            , <code>$COOKIE</code> the cookie of a login, since keys may not call what has it
          </>
        )}
        . <a href="/v2/docs">Reference of REST</a> · <a href="/graphql">GraphQL</a>
      </p>
    </details>
  );
}

type Operations = Record<string, [method: string, path: string]>;

function OneCall({ call, table, projectId }: { call: Call; table: Operations; projectId: string | undefined }) {
  return (
    <>
      {restCalls(call, table, projectId).map((text) => (
        <CallText key={text} label="curl, REST" text={text} />
      ))}
      <CallText
        label="curl, GraphQL"
        text={graphqlCall(call, isOfSession(call, table) ? undefined : projectHeader(projectId))}
      />
      <CallText label="GraphQL" text={call.query} />
    </>
  );
}

/** One call, with a button that copies it. */
export function CallText({ label, text }: { label: string; text: string }) {
  return (
    <figure>
      <figcaption>
        {label} <CopyButton text={text} label={label} />
      </figcaption>
      <pre tabIndex={0}>{text}</pre>
    </figure>
  );
}

const isStream = ({ query }: Call): boolean => query.startsWith('subscription');

/** Root fields that no operation of REST has are functions of the dashboard, which need a session. */
function isOfSession(call: Call, table: Operations): boolean {
  return !isStream(call) && [...call.query.matchAll(ROOT)].some(([, name = '']) => !table[name]);
}

const projectHeader = (projectId: string | undefined): string => (projectId ? ` -H 'X-Svc-Project: ${projectId}'` : '');

/** @param project header of it; undefined where a key will not do */
function graphqlCall(call: Call, project: string | undefined): string {
  const { query, variables } = call;
  const body = JSON.stringify({ query: query.replace(/\s+/g, ' ').trim(), variables }).replaceAll(
    "'",
    String.raw`'\''`,
  );
  const who = project === undefined ? '-b "$COOKIE"' : `-H "Authorization: Bearer $KEY"${project}`;
  const stream = isStream(call) ? ` -N -H 'Accept: text/event-stream'` : '';
  return `curl ${location.origin}/graphql ${who} -H 'Content-Type: application/json'${stream} -d '${body}'`;
}

/** Root fields at the first level of the query, with their arguments. */
const ROOT = /^ {2}(?:\w+: )?(\w+)(?:\(([^)]*)\))?/gm;

export function restCalls({ query, variables }: Call, table: Operations, projectId: string | undefined): string[] {
  return [...query.matchAll(ROOT)].flatMap(([, name = '', given = '']) => {
    const operation = table[name];
    if (!operation) return [];
    const values = argumentsOf(given, variables);
    const path = operation[1].replace(/\{(?:(\w+):)?(\w+)\}/g, (_, __, argument: string) => take(values, argument));
    const project = values.project_id ?? projectId;
    if (project === values.project_id) delete values.project_id;
    const search = new URLSearchParams(values).toString();
    const url = `${location.origin}${path}${search && `?${search}`}`;
    return [`curl '${url}' -H "Authorization: Bearer $KEY"${projectHeader(project)}`];
  });
}

function argumentsOf(text: string, variables: Record<string, unknown>): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [, name = '', value = ''] of text.matchAll(/(\w+): (\$\w+|"[^"]*"|\[[^\]]*\]|[\w.]+)/g)) {
    const found = value.startsWith('$')
      ? variables[value.slice(1)]
      : value.replace(/^"|"$/g, '').replace(/^\[|\]$/g, '');
    if (found !== undefined && found !== null && found !== '') values[name] = String(found).replace(/, /g, ',');
  }
  return values;
}

function take(values: Record<string, string>, name: string): string {
  const value = values[name] ?? '';
  delete values[name];
  return encodeURIComponent(value);
}
