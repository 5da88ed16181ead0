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
      {command && <Text label="command line" text={command} />}
      {table &&
        calls.value.map((call, index) => <OneCall key={index} call={call} table={table} projectId={projectId} />)}
      <p>
        <code>$KEY</code> is an API key. <a href="/v2/docs">Reference of REST</a> · <a href="/graphql">GraphQL</a>
      </p>
    </details>
  );
}

type Operations = Record<string, [method: string, path: string]>;

function OneCall({ call, table, projectId }: { call: Call; table: Operations; projectId: string | undefined }) {
  return (
    <>
      {restCalls(call, table, projectId).map((text) => (
        <Text key={text} label="curl, REST" text={text} />
      ))}
      <Text label="curl, GraphQL" text={graphqlCall(call)} />
      <Text label="GraphQL" text={call.query} />
    </>
  );
}

function Text({ label, text }: { label: string; text: string }) {
  return (
    <figure>
      <figcaption>
        {label} <CopyButton text={text} label={label} />
      </figcaption>
      <pre tabIndex={0}>{text}</pre>
    </figure>
  );
}

function graphqlCall({ query, variables }: Call): string {
  const body = JSON.stringify({ query: query.replace(/\s+/g, ' ').trim(), variables }).replaceAll(
    "'",
    String.raw`'\''`,
  );
  const headers = `-H "Authorization: Bearer $KEY" -H 'Content-Type: application/json'`;
  return `curl ${location.origin}/graphql ${headers} -d '${body}'`;
}

/** Root fields at the first level of the query, with their arguments. */
const ROOT = /^ {2}(?:\w+: )?(\w+)(?:\(([^)]*)\))?/gm;

export function restCalls({ query, variables }: Call, table: Operations, projectId: string | undefined): string[] {
  return [...query.matchAll(ROOT)].flatMap(([, name = '', given = '']) => {
    const operation = table[name];
    if (!operation) return [];
    const values = argumentsOf(given, variables);
    const path = operation[1].replace(/\{(?:(\w+):)?(\w+)\}/g, (_, __, argument: string) => take(values, argument));
    if (values.project_id === projectId) delete values.project_id;
    const search = new URLSearchParams(values).toString();
    const url = `${location.origin}${path}${search && `?${search}`}`;
    const project = projectId ? ` -H 'X-Svc-Project: ${projectId}'` : '';
    return [`curl '${url}' -H "Authorization: Bearer $KEY"${project}`];
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
