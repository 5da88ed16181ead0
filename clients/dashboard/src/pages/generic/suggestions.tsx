// Ids and names that a field may have, from the list of their kind: asked for when somebody comes to the field.
import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { queryText, run, type ListPage, type Row } from '../../api/resources/query';
import { knownArguments, type Operation, type Place, type ResourceTable, type Value } from '../../api/resources/table';
import { nameField, nameOf } from './words';

interface Suggestions {
  load(): void;
  given: { list?: string };
  list: ComponentChildren;
}

const ROWS = 100;

export function useSuggestions(table: ResourceTable, place: Place, field: Value): Suggestions {
  const id = useId();
  const [rows, setRows] = useState<{ value: string; label: string }[] | null>(null);
  const operation = listOf(table, place, field);
  if (!operation) return { load: () => {}, given: {}, list: null };
  const load = (): void => {
    if (rows) return;
    setRows([]);
    // Without them the id is typed in.
    readRows(table, place, operation).then(setRows, () => {});
  };
  const list = (
    <datalist id={`${id}-values`}>
      {(rows ?? []).map(({ value, label }) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </datalist>
  );
  return { load, given: { list: `${id}-values` }, list };
}

/** `application_id`, `application_ids_1` and `region` are from the lists of applications and regions. */
function listOf(table: ResourceTable, place: Place, { name, type }: Value): Operation | undefined {
  if (type !== 'ID' && type !== 'String') return undefined;
  const kind = name.replace(/(_ids?)?(_\d+)?$/, '');
  const page = Object.entries(table.pages).find(
    ([key, one]) => one.isList && !key.includes('/') && one.type.toLowerCase() === kind.replace(/_/g, ''),
  )?.[1];
  return page && (page.scope === 'account' || place.projectId) ? table.operations[page.read] : undefined;
}

async function readRows(
  table: ResourceTable,
  place: Place,
  operation: Operation,
): Promise<{ value: string; label: string }[]> {
  const variables: Row = { ...knownArguments(operation, { ...place, ids: [] }), limit: ROWS };
  const fields = table.types[operation.answer] ?? [];
  const name = nameField(fields) ?? 'id';
  const text = queryText(table, operation, Object.keys(variables), ['id', name]);
  const { answer } = await run<ListPage>(operation, text, variables);
  return answer.data.map((row) => ({ value: String(row.id ?? row[name]), label: nameOf(row, fields) }));
}
