// A list: its pages by cursor, its filters, and where it is empty, the next step.
import { useState } from 'preact/hooks';
import { queryText, run, type ListPage as Rows, type Row } from '../../api/resources/query';
import { hrefOf, keyOfKind, knownArguments, placesAbove, type Operation, type Shown } from '../../api/resources/table';
import { Empty, Table, Waiting } from '../../parts/page';
import { isUnsettled } from '../../parts/status';
import { exampleBody } from './example';
import { Filters, valuesOfAddress } from './filters';
import { Frame, mayCall, useChanges } from './frame';
import type { Around } from './links';
import { Prose } from './prose';
import { useRead } from './use_resource';
import { useSettling } from './use_settling';
import { ShortValue } from './values';
import { commandOf, kindWords, nameField, nameOf, pageTitle, purposeOf, words } from './words';

const COLUMNS_MAX = 6;
/** Of a list that says nothing of it. */
const PAGE_ARGUMENTS = ['cursor', 'limit'];

export function ListPage({ around }: { around: Around }) {
  const { table, place } = around;
  const operation = table.operations[place.page.read] as Operation;
  const known = knownArguments(operation, place);
  const filters = operation.args.filter(({ name }) => !(name in known) && !PAGE_ARGUMENTS.includes(name));
  const [given, setGiven] = useState<Row>(() => valuesOfAddress(filters));
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const fields = columnsOf(around);
  const variables = { ...known, ...given, cursor: cursors.at(-1) ?? null };
  const names = fields.map(({ name }) => name).concat('id', table.pages[`${place.key}/{}`]?.finds ?? []);
  const text = queryText(table, operation, Object.keys(variables), names);
  const { answer, error, reload } = useRead(JSON.stringify(variables), (signal) =>
    run<Rows>(operation, text, variables, { signal }),
  );
  const states = (answer?.data ?? []).map(({ status }) => String(status)).filter(isUnsettled);
  useSettling(states.join(), reload);
  useChanges(place.projectId, () => void reload());
  const change = (next: Row): void => {
    setCursors([]);
    setGiven(next);
  };
  return (
    <Frame around={around} title={pageTitle(place.key)} operation={operation}>
      <p class="purpose">
        <Prose text={purposeOf(operation)} />
      </p>
      {filters.length > 0 && <Filters table={table} place={place} values={filters} given={given} changed={change} />}
      {error && <Waiting error={error} />}
      {!answer && !error && <Waiting />}
      {answer?.data.length === 0 && <Nothing around={around} isFiltered={Object.keys(given).length > 0} />}
      {answer && answer.data.length > 0 && <RowsTable around={around} fields={fields} rows={answer.data} />}
      <Pages cursors={cursors} next={answer?.next_cursor ?? null} changed={setCursors} />
    </Frame>
  );
}

interface PagesProps {
  cursors: readonly string[];
  next: string | null;
  changed(cursors: readonly string[]): void;
}

function Pages({ cursors, next, changed }: PagesProps) {
  if (!cursors.length && !next) return null;
  return (
    <nav class="actions" aria-label="Pages of the list">
      {cursors.length > 0 && (
        <button type="button" class="quiet" onClick={() => changed(cursors.slice(0, -1))}>
          Previous page
        </button>
      )}
      {next && (
        <button type="button" class="quiet" onClick={() => changed([...cursors, next])}>
          Next page
        </button>
      )}
    </nav>
  );
}

/** The name first, then the state, then what else fits; not what the address says. */
function columnsOf({ table, place }: Around): Shown[] {
  const above = placesAbove(table, place).map(({ key }) => key);
  const all = (table.types[place.page.type] ?? []).filter(
    ({ name, secret, kind, list }) =>
      !secret && name !== 'project_id' && !above.includes(keyOfKind(table, name) ?? '') && (kind !== 'object' || !list),
  );
  const title = nameField(all);
  const isFirst = ({ name }: Shown): number =>
    name === title ? 0 : name === 'status' ? 1 : name === 'created_at' ? 3 : 2;
  const useful = all.filter(
    ({ name, type }) => name === title || (name !== 'id' && !/_reason$|^updated_at$/.test(name) && type),
  );
  const columns = useful.sort((left, right) => isFirst(left) - isFirst(right));
  const last = columns.filter(({ name }) => name === 'created_at');
  return [...columns.filter(({ name }) => name !== 'created_at').slice(0, COLUMNS_MAX - last.length), ...last];
}

function Nothing({ around, isFiltered }: { around: Around; isFiltered: boolean }) {
  const { table, place } = around;
  if (isFiltered) return <p class="faint">Nothing matches the filter.</p>;
  const name = place.page.operations.find((one) => table.operations[one]?.method === 'POST');
  const create = name === undefined ? undefined : table.operations[name];
  if (!create) return <p class="faint">Nothing here yet.</p>;
  const href = `${hrefOf(place.key, place.projectId, place.ids)}?do=${create.name}`;
  return (
    <Empty
      title={`No ${kindWords(place.page.type)} yet`}
      command={commandOf(create, place, exampleBody(table, create))}
      action={
        mayCall(create, place) && (
          <a role="button" href={href}>
            {words(create.name)}
          </a>
        )
      }
    >
      <Prose text={purposeOf(create)} />
    </Empty>
  );
}

const isThere = (value: unknown): boolean => value !== null && value !== undefined && value !== '';

function RowsTable({ around, fields: all, rows }: { around: Around; fields: readonly Shown[]; rows: readonly Row[] }) {
  // A column that no row fills is room for the others.
  const fields = all.filter(({ name }, column) => column === 0 || rows.some((row) => isThere(row[name])));
  return (
    <Table
      label={pageTitle(around.place.key)}
      head={fields.map(({ name, type }) => words(type === 'ID' ? name.replace(/_id$/, '') : name))}
    >
      {rows.map((row, index) => (
        <tr key={String(row.id ?? index)}>
          {fields.map((field, column) =>
            column === 0 ? (
              <th key={field.name} scope="row">
                <RowName around={around} row={row} />
              </th>
            ) : (
              <td key={field.name}>
                <ShortValue field={field} value={row[field.name]} row={row} around={around} />
              </td>
            ),
          )}
        </tr>
      ))}
    </Table>
  );
}

function RowName({ around, row }: { around: Around; row: Row }) {
  const { table, place } = around;
  const name = nameOf(row, table.types[place.page.type] ?? []);
  const href = hrefOfRow(around, row);
  return href ? <a href={href}>{name}</a> : <>{name}</>;
}

function hrefOfRow({ table, place }: Around, row: Row): string | undefined {
  const { key, page, projectId, ids } = place;
  // Projects are pages of their own, with all that they have.
  if (page.type === 'Project') return `/projects/${String(row.id)}`;
  const item = table.pages[`${key}/{}`];
  if (!item) return undefined;
  const id = item.finds ? row[item.finds] : (row.id ?? row[nameField(table.types[page.type] ?? []) ?? 'id']);
  return id === undefined ? undefined : hrefOf(`${key}/{}`, projectId, [...ids, String(id)]);
}
