// What a list or a document may be asked for, such as a state or a period; kept in the address.
import { useState } from 'preact/hooks';
import type { Row } from '../../api/resources/query';
import type { Place, ResourceTable, Value } from '../../api/resources/table';
import { address, setQuery } from '../../router';
import { emptyDrafts, inputOf, type Drafts } from './draft';
import { Fields } from './fields';

/** Arguments as the address has them. */
export function valuesOfAddress(values: readonly Value[]): Row {
  const { query } = address.peek();
  const drafts: Drafts = {};
  for (const { name, list } of values) {
    const text = query.get(name);
    if (text) drafts[name] = list ? text.split(',') : text;
  }
  return inputOf(EMPTY, values.map(optional), drafts);
}

const EMPTY: ResourceTable = { operations: {}, pages: {}, types: {}, inputs: {}, enums: {} };
const NOWHERE: Place = {
  key: '',
  page: { path: '', group: '', scope: 'account', read: '', isList: false, type: '', operations: [], pages: [] },
  projectId: undefined,
  ids: [],
};

const optional = (value: Value): Value => ({ ...value, required: false });

interface FiltersProps {
  table: ResourceTable;
  place?: Place;
  values: readonly Value[];
  given: Row;
  changed(given: Row): void;
}

export function Filters({ table, place = NOWHERE, values, given, changed }: FiltersProps) {
  const fields = values.map(optional);
  const [drafts, setDrafts] = useState<Drafts>(() => ({ ...emptyDrafts(table, fields.map(unset)), ...textsOf(given) }));
  const apply = (): void => {
    const next = inputOf(table, fields, drafts);
    setQuery(Object.fromEntries(fields.map(({ name }) => [name, textOf(next[name])])));
    changed(next);
  };
  const count = Object.keys(given).length;
  return (
    <details class="generic-filters" open={count > 0}>
      <summary>
        Filter
        {count > 0 && ` (${count})`}
      </summary>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          apply();
        }}
      >
        <div class="columns">
          <Fields
            table={table}
            place={place}
            fields={fields}
            drafts={drafts}
            path=""
            error={null}
            isEdit
            changed={setDrafts}
          />
        </div>
        <button type="submit" class="quiet">
          Apply
        </button>
      </form>
    </details>
  );
}

/** The server applies its defaults where nothing is given. */
const unset = (value: Value): Value => ({ ...value, default: undefined });

const textOf = (value: unknown): string =>
  value === undefined || value === null ? '' : Array.isArray(value) ? value.join(',') : String(value);

function textsOf(given: Row): Drafts {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, Array.isArray(value) ? value.map(String) : String(value)]),
  );
}
