// `x-codeSamples`: how to call each operation with curl, JavaScript and Python. Samples read the address, the key and
// the project from the environment, so that they can be pasted unchanged and contain no secret.
import type { Operation } from '../../contract/operations';
import { usesProjectHeader } from './error_codes';
import type { CodeSample, Parameter, Ref, RequestBody } from './document';

interface Call {
  method: string;
  /** The path with example values for its parameters. */
  path: string;
  /** Whether it needs the header with the project. */
  project: boolean;
  key: boolean;
  body: unknown;
}

export function codeSamples(
  operation: Operation,
  parameters: (Parameter | Ref)[],
  body: RequestBody | undefined,
): CodeSample[] {
  const call: Call = {
    method: operation.method,
    path: `${pathOf(operation, parameters)}${queryOf(parameters)}`,
    project: usesProjectHeader(operation),
    key: operation.field.scope !== 'none',
    body: body?.content['application/json'].example,
  };
  return [
    { lang: 'Shell', label: 'curl', source: curl(call) },
    { lang: 'JavaScript', label: 'JavaScript', source: javascript(call) },
    { lang: 'Python', label: 'Python', source: python(call) },
  ];
}

function curl({ method, path, project, key, body }: Call): string {
  const lines = [`curl${method === 'GET' ? '' : ` -X ${method}`} "$PLATFORM_URL${path}"`];
  if (key) lines.push(`-H "Authorization: Bearer $PLATFORM_KEY"`);
  if (project) lines.push(`-H "X-Svc-Project: $PLATFORM_PROJECT"`);
  if (body !== undefined)
    lines.push(`-H "Content-Type: application/json"`, `-d '${JSON.stringify(body).replaceAll("'", `'\\''`)}'`);
  return lines.join(' \\\n  ');
}

function javascript({ method, path, project, key, body }: Call): string {
  const headers = [
    ...(key ? ['    Authorization: `Bearer ${PLATFORM_KEY}`,'] : []),
    ...(project ? ["    'X-Svc-Project': PLATFORM_PROJECT,"] : []),
    ...(body === undefined ? [] : ["    'Content-Type': 'application/json',"]),
  ];
  return [
    `const { ${environment({ key, project }).join(', ')} } = process.env;`,
    `const response = await fetch(\`\${PLATFORM_URL}${path}\`, {`,
    `  method: '${method}',`,
    ...(headers.length ? ['  headers: {', ...headers, '  },'] : []),
    ...(body === undefined ? [] : [`  body: JSON.stringify(${JSON.stringify(body)}),`]),
    '});',
    'console.log(response.status, await response.text());',
  ].join('\n');
}

function python({ method, path, project, key, body }: Call): string {
  const headers = [
    ...(key ? [`    "Authorization": f"Bearer {os.environ['PLATFORM_KEY']}",`] : []),
    ...(project ? ['    "X-Svc-Project": os.environ["PLATFORM_PROJECT"],'] : []),
    ...(body === undefined ? [] : ['    "Content-Type": "application/json",']),
  ];
  return [
    'import os',
    'import urllib.request',
    '',
    'request = urllib.request.Request(',
    `    os.environ["PLATFORM_URL"] + "${path}",`,
    `    method="${method}",`,
    ...(headers.length ? ['    headers={', ...headers.map((line) => `    ${line}`), '    },'] : []),
    ...(body === undefined ? [] : [`    data=${pythonText(JSON.stringify(body))}.encode(),`]),
    ')',
    'with urllib.request.urlopen(request) as response:',
    '    print(response.status, response.read().decode())',
  ].join('\n');
}

function environment({ key, project }: Pick<Call, 'key' | 'project'>): string[] {
  return ['PLATFORM_URL', ...(key ? ['PLATFORM_KEY'] : []), ...(project ? ['PLATFORM_PROJECT'] : [])];
}

/** A string of JSON is one of Python too. */
function pythonText(text: string): string {
  return JSON.stringify(text);
}

function pathOf({ path }: Operation, parameters: (Parameter | Ref)[]): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const parameter = parameters.find((one) => 'name' in one && one.in === 'path' && one.name === name);
    const example = parameter && 'example' in parameter ? parameter.example : undefined;
    return encodeURIComponent(String(example ?? name));
  });
}

/** Only what must be given: everything else has a default. */
function queryOf(parameters: (Parameter | Ref)[]): string {
  const required = parameters.filter((one): one is Parameter => 'name' in one && one.in === 'query' && one.required);
  const query = required.map(({ name, example }) => `${name}=${encodeURIComponent(String(example ?? ''))}`);
  return query.length ? `?${query.join('&')}` : '';
}
