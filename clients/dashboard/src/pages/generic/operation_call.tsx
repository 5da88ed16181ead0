// "As API call" of a form, as it is filled in: the command line, curl and GraphQL. Secrets are covered.
import { useState } from 'preact/hooks';
import { queryText, type Row } from '../../api/resources/query';
import { parametersOf, type Operation, type Value } from '../../api/resources/table';
import { CallText } from '../../parts/api_calls';
import { withoutSecrets } from './draft';
import { quote } from '../../parts/command';
import type { Around } from './links';
import { commandOf } from './words';

interface OperationCallProps {
  around: Around;
  operation: Operation;
  /** Arguments beside the body. */
  args: Row;
  input: Row;
  fields: readonly Value[];
}

export function OperationCall(props: OperationCallProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="api-calls" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>This form as API call</summary>
      {isOpen && textsOf(props).map(([label, text]) => <CallText key={label} label={label} text={text} />)}
    </details>
  );
}

function textsOf({ around, operation, args, input, fields }: OperationCallProps): [label: string, text: string][] {
  const { table, place } = around;
  const body = operation.body && withoutSecrets(table, fields, input);
  const variables = body ? { ...args, [operation.body as string]: body } : args;
  const text = queryText(table, operation, Object.keys(variables));
  const command = operation.body && Object.keys(input).length ? withoutSecrets(table, fields, input) : {};
  return [
    ['command line of this form', commandOf(operation, place, command)],
    ['curl of this form', curlOf(operation, args, body || undefined, place.projectId)],
    ['GraphQL of this form', `${text}\n\n${JSON.stringify(variables, null, 2)}`],
  ];
}

function curlOf(operation: Operation, args: Row, body: Row | undefined, projectId: string | undefined): string {
  const inPath = parametersOf(operation.rest);
  const path = operation.rest.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(args[name] ?? '…')));
  const isNamed = inPath.some((name) => name === operation.project) || operation.isGlobal || !projectId;
  return [
    `curl -X ${operation.method} ${quote(location.origin + path)} -H "Authorization: Bearer $KEY"`,
    ...(isNamed ? [] : [`-H 'X-Svc-Project: ${projectId}'`]),
    ...(body ? [`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(body))}`] : []),
  ].join(' ');
}
