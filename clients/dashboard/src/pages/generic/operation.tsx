// The form of an operation: create, edit, or anything else that can be done with what a page shows.
import { useEffect, useRef } from 'preact/hooks';
import type { Row } from '../../api/resources/query';
import { hrefOf, type Operation } from '../../api/resources/table';
import { Page, Waiting, type Tab } from '../../parts/page';
import { mayCall, trailTo } from './frame';
import type { Around } from './links';
import { OperationForm } from './operation_form';
import { Prose } from './prose';
import { readDocument, useRead } from './use_resource';
import { commandOf, isEdit, nameOf, pageTitle, purposeOf, words } from './words';

export function OperationPage({ around, operation }: { around: Around; operation: Operation }) {
  const { place } = around;
  const heading = useRef<HTMLParagraphElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <Page
      title={words(operation.name)}
      trail={trail(around)}
      projectId={place.projectId}
      command={commandOf(operation, place)}
    >
      <p class="purpose" ref={heading} tabIndex={-1}>
        <Prose text={purposeOf(operation)} />
      </p>
      {!mayCall(operation, place) ? (
        <p class="notice">This needs the role {operation.role}. An owner of the project can change your role.</p>
      ) : place.page.isList ? (
        <OperationForm around={around} operation={operation} name={pageTitle(place.key)} row={{}} etag={null} />
      ) : (
        <WithDocument around={around} operation={operation} />
      )}
    </Page>
  );
}

function trail(around: Around): Tab[] {
  const { place } = around;
  const own = { href: hrefOf(place.key, place.projectId, place.ids), label: labelOf(around) };
  return [...trailTo(around), own];
}

function labelOf({ place }: Around): string {
  return place.key.endsWith('{}') ? (place.ids.at(-1) ?? '') : pageTitle(place.key);
}

/** Forms begin with what is there, and say its name. */
function WithDocument({ around, operation }: { around: Around; operation: Operation }) {
  const { table, place } = around;
  const { answer, etag, error } = useRead<Row>('document', (signal) => readDocument(table, place, {}, signal));
  // What is written by its name may be new.
  const isNew = error?.status === 404 && operation.method === 'PUT';
  if (!answer && !isNew) return <Waiting error={error} rows={6} />;
  const row = answer ?? {};
  const name = place.key.endsWith('{}') ? nameOf(row, table.types[place.page.type] ?? []) : pageTitle(place.key);
  return (
    <OperationForm
      around={around}
      operation={operation}
      name={name}
      row={row}
      etag={isEdit(operation, place.page) ? etag : null}
    />
  );
}
