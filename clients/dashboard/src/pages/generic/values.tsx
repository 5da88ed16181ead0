// Any value of an answer, by its type.
import { Fragment, type ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Row } from '../../api/resources/query';
import type { ResourceTable, Shown } from '../../api/resources/table';
import { Copyable } from '../../parts/copy';
import { Table } from '../../parts/page';
import { ResourceLink } from '../../parts/resource_name';
import { Status } from '../../parts/status';
import { Ago, bytesText } from '../../parts/time';
import { Link, type Around } from './links';
import { Address, Clip } from '../../parts/table';
import { words } from './words';

interface ValueProps {
  field: Shown;
  value: unknown;
  row: Row;
  around: Around;
}

const isEmpty = (value: unknown): boolean => value === null || value === undefined || value === '';

/** So long a text widens its table no further. */
const CELL_LENGTH_MAX = 40;

/** Of a cell of a table: short. */
export function ShortValue({ field, value, row, around }: ValueProps) {
  if (isEmpty(value)) return <span class="faint">–</span>;
  if (field.list) {
    const list = value as unknown[];
    if (field.kind === 'object') return <>{list.length}</>;
    if (field.type === 'ID') return <ListValue field={field} value={list} row={row} around={around} />;
    return <Clip text={list.join(', ')} />;
  }
  if (field.kind === 'object') return <Summary type={field.type} row={value as Row} around={around} />;
  if (field.secret) return <span class="faint">secret</span>;
  if (field.type === 'String' && !isUrl(value) && String(value).length > CELL_LENGTH_MAX)
    return <Clip text={String(value)} />;
  return <Scalar field={field} value={value} row={row} around={around} />;
}

function isUrl(value: unknown): value is string {
  return typeof value === 'string' && /^https?:\/\/\S+$/.test(value);
}

/** So many values stand for an object. */
const SUMMARY_MAX = 2;

function Summary({ type, row, around }: { type: string; row: Row; around: Around }) {
  const fields = (around.table.types[type] ?? []).filter(
    ({ name, kind, list, secret }) => kind !== 'object' && !list && !secret && !isEmpty(row[name]),
  );
  if (!fields.length) return <span class="faint">–</span>;
  return (
    <>
      {fields.slice(0, SUMMARY_MAX).map((field) => (
        <Fragment key={field.name}>
          {field.name === 'id' ? (
            <ResourceLink projectId={around.place.projectId} id={String(row.id)} name={row.name as string | null} />
          ) : (
            <ShortValue field={field} value={row[field.name]} row={row} around={around} />
          )}{' '}
        </Fragment>
      ))}
    </>
  );
}

/** Numbers that are amounts, not ports, codes or serials; `ByteCount` is also the type of those that are large. */
const COUNTS = /(tokens|requests|errors|hits|messages|objects|count|limit|_mb|_ms)$/;

function Scalar({ field, value, row, around }: ValueProps) {
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>;
  if (field.type === 'DateTime') return <Ago time={String(value)} />;
  if (field.type === 'ByteCount' && !COUNTS.test(field.name))
    return <span title={`${String(value)} bytes`}>{bytesText(Number(value))}</span>;
  if (field.kind === 'enum' && /^(status|state|outcome)$|_(status|state)$/.test(field.name))
    return <Status value={String(value)} title={row[`${field.name}_reason`] as string | null} />;
  if (field.kind === 'enum') return <>{String(value).replace(/_/g, ' ')}</>;
  if (field.type === 'ID') return <Link field={field.name} id={String(value)} row={row} around={around} />;
  if (isUrl(value)) return <Address url={value} />;
  if (COUNTS.test(field.name) && !Number.isNaN(Number(value))) return <>{Number(value).toLocaleString('en')}</>;
  return <>{String(value)}</>;
}

/** Of a document: all of it. */
export function FullValue({ field, value, row, around }: ValueProps): ComponentChildren {
  if (isEmpty(value)) return <span class="faint">–</span>;
  if (field.list) return <ListValue field={field} value={value} row={row} around={around} />;
  if (field.kind === 'object') return <ObjectValue type={field.type} row={value as Row} around={around} />;
  if (field.secret) return <Secret label={words(field.name)} text={String(value)} />;
  const text = String(value);
  if (field.type === 'String' && text.includes('\n'))
    return (
      <pre tabIndex={0} class="text-value">
        {text}
      </pre>
    );
  return <Scalar field={field} value={value} row={row} around={around} />;
}

/** Covered until somebody wants to see it. */
function Secret({ label, text }: { label: string; text: string }) {
  const [isShown, setShown] = useState(false);
  return (
    <span class="secret">
      <Copyable text={text} label={label} shown={isShown ? text : '••••••••'} />
      <button type="button" class="quiet small" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
        {isShown ? 'Hide' : 'Show'}
        <span class="off-screen"> {label}</span>
      </button>
    </span>
  );
}

function ListValue({ field, value, row, around }: ValueProps) {
  const list = value as unknown[];
  if (!list.length) return <span class="faint">none</span>;
  if (field.kind === 'object')
    return <RowTable label={words(field.name)} type={field.type} rows={list as Row[]} around={around} />;
  const one = { ...field, list: false };
  return (
    <ul class="plain-list">
      {list.map((entry, index) => (
        <li key={index}>
          <Scalar field={one} value={entry} row={row} around={around} />
        </li>
      ))}
    </ul>
  );
}

interface RowTableProps {
  label: string;
  type: string;
  rows: readonly Row[];
  around: Around;
}

function RowTable({ label, type, rows, around }: RowTableProps) {
  const fields = around.table.types[type] ?? [];
  return (
    <Table label={label} head={fields.map(({ name }) => words(name))}>
      {rows.map((row, index) => (
        <tr key={index}>
          {fields.map((field) => (
            <td key={field.name}>
              {field.secret && !isEmpty(row[field.name]) ? (
                <Secret label={words(field.name)} text={String(row[field.name])} />
              ) : (
                <ShortValue field={field} value={row[field.name]} row={row} around={around} />
              )}
            </td>
          ))}
        </tr>
      ))}
    </Table>
  );
}

/** All fields of an object as name and value. */
export function ObjectValue({ type, row, around }: { type: string; row: Row; around: Around }) {
  const fields = around.table.types[type] ?? [];
  return (
    <dl class="facts generic">
      {fields.map((field) => (
        <div key={field.name} class={isWide(around.table, field, row[field.name]) ? 'wide' : undefined}>
          <dt title={field.description}>{words(field.name)}</dt>
          <dd>
            <FullValue field={field} value={row[field.name]} row={row} around={around} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function isWide(table: ResourceTable, field: Shown, value: unknown): boolean {
  if (isEmpty(value)) return false;
  if (field.kind === 'object') return Boolean(table.types[field.type]) && (!field.list || (value as []).length > 0);
  return field.secret === true || (typeof value === 'string' && value.length > 60);
}
