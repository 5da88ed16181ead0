import { CopyButton } from './copy';
import { StatusReason } from './status';
import { Clip, Table } from './table';
import { words } from './words';

interface Instruction {
  purpose: string;
  type: string;
  name: string;
  value: string;
  priority?: number | null;
  status: string;
  observed_values: readonly string[];
}

/** Records to set in the DNS, and what it answers now. */
export function DnsInstructions({ records, label }: { records: readonly Instruction[]; label: string }) {
  return (
    <Table label={label} head={['For', 'Type', 'Name', 'Value', 'State']}>
      {records.map(({ purpose, type, name, value, priority, status, observed_values }) => (
        <tr key={`${type} ${name} ${value}`}>
          <th scope="row">
            <span>{words(purpose)}</span>
          </th>
          <td>{type}</td>
          <td>
            <span class="with-copy">
              <Clip code text={name} /> <CopyButton text={name} label={`name for ${purpose}`} />
            </span>
          </td>
          <td>
            <span class="with-copy">
              <Clip code text={priority == null ? value : `${priority} ${value}`} />{' '}
              <CopyButton text={value} label={`value for ${purpose}`} />
            </span>
          </td>
          <td>
            <StatusReason value={status} reason={status === 'verified' ? null : foundText(observed_values)} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** What the DNS answers in place of what it should. */
export function foundText(values: readonly string[]): string {
  return values.length ? `Found: ${values.join(', ')}` : 'Nothing found';
}
