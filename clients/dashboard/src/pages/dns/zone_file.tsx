// The zone as a file (RFC 1035 §5): out, and in after a look at what it changes.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { Form, Problem, Select, TextArea, useFields } from '../../parts/form';
import { Section } from '../../parts/page';
import type { ZoneData } from './zone';

const EXPORT = graphql(`
  query ExportZone($id: ID!) {
    exportDnsZone(id: $id) {
      zone_file
    }
  }
`);
const IMPORT = graphql(`
  mutation ImportZone($id: ID!, $input: ImportDnsZoneInput!) {
    importDnsZone(id: $id, input: $input) {
      created
      updated
      deleted
      skipped
      errors {
        line
        message
      }
      notes {
        line
        message
      }
    }
  }
`);

type Imported = ResultOf<typeof IMPORT>['importDnsZone'];

const MODES = [
  { value: 'merge', label: 'merge with the existing records' },
  { value: 'replace', label: 'replace the existing records' },
] as const;
type Mode = (typeof MODES)[number]['value'];

interface ZoneFileProps {
  zone: ZoneData;
  mayChange: boolean;
  /** Records may be others than before. */
  imported(): void;
}

export function ZoneFile({ zone, mayChange, imported }: ZoneFileProps) {
  const save = useAction(async () => {
    const { exportDnsZone } = await request(EXPORT, { id: zone.id });
    const address = URL.createObjectURL(new Blob([exportDnsZone.zone_file], { type: 'text/dns' }));
    const link = document.createElement('a');
    Object.assign(link, { href: address, download: `${zone.name}.zone` });
    link.click();
    URL.revokeObjectURL(address);
  });
  return (
    <Section
      title="Zone file"
      actions={
        <button type="button" class="quiet small" onClick={() => void save.run()}>
          Export
        </button>
      }
    >
      <Problem error={save.error} />
      {mayChange ? (
        <Import zone={zone} imported={imported} />
      ) : (
        <p class="faint">Developers and owners import zone files.</p>
      )}
    </Section>
  );
}

function Import({ zone, imported }: Omit<ZoneFileProps, 'mayChange'>) {
  const fields = useFields({ zone_file: '', mode: 'merge' });
  const [answer, setAnswer] = useState<{ imported: Imported; isDryRun: boolean } | null>(null);
  const action = useAction(async (dry_run: boolean) => {
    const { zone_file, mode } = fields.values;
    const { importDnsZone } = await request(IMPORT, { id: zone.id, input: { zone_file, mode: mode as Mode, dry_run } });
    setAnswer({ imported: importDnsZone, isDryRun: dry_run });
    if (dry_run) return;
    fields.set({ zone_file: '' });
    imported();
  });
  const read = async (file: File | undefined): Promise<void> => {
    if (file) fields.set({ zone_file: await file.text() });
  };
  return (
    <Form action={{ run: () => action.run(true).then(() => false) }}>
      <label>
        Upload a zone file
        <input type="file" onChange={(event) => void read(event.currentTarget.files?.[0])} />
      </label>
      <TextArea
        label="Text of the zone file"
        {...fields.of('zone_file', action)}
        required
        rows={6}
        placeholder="www 300 IN A 192.0.2.10"
      />
      <Select label="Mode" {...fields.of('mode', action)} options={MODES} onChange={(mode) => fields.set({ mode })} />
      <Problem error={action.error} fields={['zone_file', 'mode']} />
      {answer && <Answer {...answer} />}
      <footer class="actions">
        <button type="submit" class="quiet" aria-disabled={action.isRunning}>
          Show what would change
        </button>
        {answer?.isDryRun && (
          <button type="button" aria-disabled={action.isRunning} onClick={() => void action.run(false)}>
            Import
          </button>
        )}
      </footer>
    </Form>
  );
}

function Answer({ imported, isDryRun }: { imported: Imported; isDryRun: boolean }) {
  const { created, updated, deleted, skipped, errors, notes } = imported;
  const counts = `${created} created, ${updated} changed, ${deleted} deleted, ${skipped} left out`;
  return (
    <div class={errors.length ? 'notice bad' : 'notice good'} role="status">
      {isDryRun ? `It would be: ${counts}. Nothing has been changed yet.` : `Imported: ${counts}.`}
      <ul>
        {[...errors, ...notes].map(({ line, message }, index) => (
          <li key={index}>
            Line {line}: {message}
          </li>
        ))}
      </ul>
    </div>
  );
}
