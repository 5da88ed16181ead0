// Tables: rows become cards where there is no room for columns, and what scrolls sideways shows that it does.
import type { ComponentChildren } from 'preact';

interface TableProps {
  label: string;
  /** Titles of the columns; an empty one is that of buttons. */
  head: readonly string[];
  children: ComponentChildren;
}

export function Table({ label, head, children }: TableProps) {
  // As cards, each value stands behind the title of its column (styles/tables.css).
  const titles = Object.fromEntries(head.map((title, index) => [`--title-${index + 1}`, JSON.stringify(title)]));
  return (
    <div class="table" tabIndex={0} role="region" aria-label={label}>
      <table style={titles}>
        <thead>
          <tr>
            {head.map((title) => (
              <th key={title} scope="col">
                {title || <span class="off-screen">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** Title of a column -> its cell. */
export type Columns<Row> = Record<string, (row: Row) => ComponentChildren>;

interface RowsTableProps<Row> {
  label: string;
  rows: readonly Row[];
  /** The first one names the row. */
  columns: Columns<Row>;
  keyOf(row: Row): string;
}

/** A table that says what stands in its columns. */
export function RowsTable<Row>({ label, rows, columns, keyOf }: RowsTableProps<Row>) {
  const [[, nameOf] = [], ...cells] = Object.entries(columns);
  return (
    <Table label={label} head={Object.keys(columns)}>
      {rows.map((row) => (
        <tr key={keyOf(row)}>
          <th scope="row">
            <span>{nameOf?.(row)}</span>
          </th>
          {cells.map(([title, cellOf]) => (
            <td key={title}>{cellOf(row)}</td>
          ))}
        </tr>
      ))}
    </Table>
  );
}

/** A text that may be long: two lines of it, and all of it in its title. */
export function Clip({ text, code = false }: { text: string | null | undefined; code?: boolean }) {
  if (!text) return <span class="faint">–</span>;
  const Tag = code ? 'code' : 'span';
  return (
    <Tag class="clip" title={text}>
      {text}
    </Tag>
  );
}

/** An address of a service of the platform, or one it watches, in a window of its own; else what it is called. */
export function Address({ url, shown = url }: { url: string | null | undefined; shown?: string | null | undefined }) {
  if (!url) return <span class="clip faint">{shown ?? '–'}</span>;
  if (!/^https?:\/\//.test(url)) return <Clip text={shown} />;
  return (
    <a class="clip" href={url} title={url} target="_blank" rel="noreferrer">
      {shown}
      <span class="off-screen"> (in a new tab)</span>
    </a>
  );
}
