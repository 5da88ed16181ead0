// Backups of the whole installation: the last one, whether it was proven, the next one, and what to do without one.
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { Copyable } from '../../parts/copy';
import { Facts, Section, Waiting } from '../../parts/page';
import { RowsTable } from '../../parts/table';
import { Status } from '../../parts/status';
import { Ago, bytesText, durationText, secondsText, shortTime } from '../../parts/time';
import { OperatorPage } from './frame';

const BACKUPS = graphql(`
  query InstallationBackups {
    installationBackups {
      repository
      obstacle
      every_hours
      started_at
      ended_at
      error
      last_whole_at
      next_at
      files
      bytes
      added_bytes
      notes
      proven_at
      proof_seconds
      proof_error
      points {
        id
        made_at
        version
        bytes
        proven_at
        proof_error
      }
    }
  }
`);

type Backups = ResultOf<typeof BACKUPS>['installationBackups'];

const EVERY_MS = 10_000;

export function InstallationBackupsPage() {
  const { data, error } = useQuery(BACKUPS, {}, EVERY_MS);
  const backups = data?.installationBackups;
  return (
    <OperatorPage title="Backups">
      {!backups && <Waiting error={error} rows={6} />}
      {backups && (
        <>
          {backups.obstacle && <NoBackups obstacle={backups.obstacle} />}
          {(backups.repository ?? backups.started_at) !== null && <Last backups={backups} />}
          {backups.points.length > 0 && <Points points={backups.points} />}
          {backups.last_whole_at && <Restore />}
        </>
      )}
    </OperatorPage>
  );
}

function NoBackups({ obstacle }: { obstacle: string }) {
  return (
    <Section title="No backups are made">
      <p class="notice bad">{obstacle}</p>
      <p>
        Then this command on the machine makes one at once, while everything runs, and restores it aside to prove it:
      </p>
      <Copyable text="platform backup" label="command" />
    </Section>
  );
}

function Last({ backups }: { backups: Backups }) {
  const { repository, started_at, ended_at, error, last_whole_at, every_hours, next_at, notes } = backups;
  const isRunning = started_at !== null && ended_at === null;
  return (
    <Section title="Last backup">
      {error && <p class="notice bad">The last attempt failed: {error}</p>}
      {isRunning && (
        <p class="notice" role="status">
          A backup was begun <Ago time={started_at} />, and has not ended.
        </p>
      )}
      <Facts
        facts={[
          ['Last whole backup', <Ago key="last" time={last_whole_at} />],
          ['Last proven', <Proof key="proof" backups={backups} />, 'double'],
          [
            'Next',
            next_at === null ? '–' : Date.parse(next_at) < Date.now() ? 'due now' : <Ago key="next" time={next_at} />,
          ],
          ['Every', secondsText(every_hours * 3_600)],
          ['Repository', <code key="place">{repository}</code>, 'double'],
          ...(error === null && ended_at
            ? ([
                ['It took', durationText(started_at, ended_at)],
                ['Files', backups.files?.toLocaleString('en')],
                ['Size', bytesText(backups.bytes)],
                ['Added to the repository', bytesText(backups.added_bytes)],
              ] as const)
            : []),
        ]}
      />
      {notes.map((note) => (
        <p key={note} class="notice">
          {note}
        </p>
      ))}
    </Section>
  );
}

function Proof({ backups: { proven_at, proof_seconds, proof_error } }: { backups: Backups }) {
  if (proven_at === null) return <>not yet</>;
  if (proof_error) {
    return (
      <>
        <Status value="failed" /> <small class="reason">The backup is not usable: {proof_error}</small>
      </>
    );
  }
  return (
    <>
      <Status value="ok" /> {shortTime(proven_at)}, {secondsText(Math.round(proof_seconds ?? 0))}
    </>
  );
}

function Points({ points }: { points: Backups['points'] }) {
  return (
    <Section title="Backups in the repository">
      <RowsTable
        label="Backups in the repository"
        rows={points}
        keyOf={({ id }) => id}
        columns={{
          Made: ({ made_at }) => shortTime(made_at),
          Backup: ({ id }) => <code>{id.slice(0, 8)}</code>,
          Size: ({ bytes }) => bytesText(bytes),
          Version: ({ version }) => version ?? '–',
          Proven: ({ proven_at, proof_error }) =>
            proof_error ? <Status value="failed" /> : proven_at ? shortTime(proven_at) : '–',
        }}
      />
    </Section>
  );
}

function Restore() {
  return (
    <Section title="Restore">
      <p>On an empty machine with the same release, and with the passphrase, this brings everything back:</p>
      <Copyable text="platform restore --from REPOSITORY --passphrase-file FILE" label="command" />
    </Section>
  );
}
