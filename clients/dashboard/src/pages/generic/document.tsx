// One thing, or one document of a thing: all of its fields, what belongs to it, what can be done with it.
import { useEffect, useState } from 'preact/hooks';
import type { Row } from '../../api/resources/query';
import { hrefOf, knownArguments, type Operation } from '../../api/resources/table';
import { learnName } from '../../parts/resource_name';
import { Waiting } from '../../parts/page';
import { isUnsettled, Status } from '../../parts/status';
import { navigate } from '../../router';
import { Filters, valuesOfAddress } from './filters';
import { Below, Frame, useChanges } from './frame';
import type { Around } from './links';
import { Measured } from './measured';
import { Prose } from './prose';
import { readDocument, useRead } from './use_resource';
import { useSettling } from './use_settling';
import { ObjectValue } from './values';
import { nameField, nameOf, pageTitle, purposeOf } from './words';

export function DocumentPage({ around }: { around: Around }) {
  const { table, place } = around;
  const operation = table.operations[place.page.read] as Operation;
  const known = knownArguments(operation, place);
  const asked = place.page.finds ? [] : operation.args.filter(({ name }) => !(name in known));
  const [given, setGiven] = useState<Row>(() => valuesOfAddress(asked));
  const { answer, error, reload } = useRead(JSON.stringify(given), (signal) =>
    readDocument(table, place, given, signal),
  );
  const status = typeof answer?.status === 'string' ? answer.status : undefined;
  useSettling(isUnsettled(status) ? String(status) : '', reload);
  useChanges(place.projectId, () => void reload());
  useEffect(() => learnName(answer?.id, answer?.name), [answer]);
  useEffect(() => {
    const project = answer?.project_id;
    // An id of another project of the person: its pages are there. What is shared was asked for as this project.
    const isElsewhere = place.projectId && project !== place.projectId && !operation.project;
    if (isElsewhere && typeof project === 'string' && place.ids.length === 1)
      navigate(hrefOf(place.key, project, place.ids), 'replace');
  }, [answer]);
  return (
    <Frame
      around={around}
      title={titleOf(around, answer)}
      beside={status && <Status value={status} title={answer?.status_reason as string | null} />}
      operation={operation}
      isMissing={!answer && error?.status === 404}
    >
      {!place.key.endsWith('{}') && (
        <p class="purpose">
          <Prose text={purposeOf(operation)} />
        </p>
      )}
      {asked.length > 0 && <Filters table={table} values={asked} given={given} changed={setGiven} />}
      {answer ? <Shown around={around} row={answer} /> : <Waiting error={error} rows={6} />}
      {answer && error && <Waiting error={error} />}
      <Below around={around} />
    </Frame>
  );
}

function Shown({ around, row }: { around: Around; row: Row }) {
  const { type } = around.place.page;
  if (type === 'Metrics') return <Measured row={row} />;
  return (
    <>
      {typeof row.status_reason === 'string' && <p class="notice">{row.status_reason}</p>}
      <ObjectValue type={type} row={row} around={around} />
    </>
  );
}

function titleOf({ table, place }: Around, row: Row | null): string {
  const { key, page, ids } = place;
  if (!key.endsWith('{}')) return pageTitle(key);
  const fields = table.types[page.type] ?? [];
  return row && nameField(fields) ? nameOf(row, fields) : (ids.at(-1) ?? '');
}
