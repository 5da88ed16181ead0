// What uses the disks, by kind and by project, as it was measured last; and caches that can be made again.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Empty, Section, Waiting } from '../../parts/page';
import { RowsTable } from '../../parts/table';
import { Ago, bytesText, secondsText } from '../../parts/time';
import { words } from '../../parts/words';
import { OperatorPage } from './frame';

const USE = graphql(`
  query InstallationDiskUse {
    installationDiskUse {
      machine
      measured_at
      seconds
      kinds {
        kind
        bytes
        is_cleaned
        is_part
        problem
      }
      projects {
        id
        name
        bytes
        parts {
          kind
          bytes
        }
      }
      cleaning {
        requested_at
        ended_at
        applications
        freed_bytes
        kept
        problem
      }
    }
  }
`);
const CLEAN = graphql(`
  mutation CleanBuildCaches($machine: String!) {
    cleanBuildCaches(machine: $machine) {
      requested_at
    }
  }
`);

type Use = ResultOf<typeof USE>['installationDiskUse'][number];

const EVERY_MS = 5_000;
const PARTS_MAX = 3;

export function DiskUsePage() {
  const { data, error, reload } = useQuery(USE, {}, EVERY_MS);
  const used = data?.installationDiskUse;
  return (
    <OperatorPage title="Disk use">
      {!used && <Waiting error={error} rows={8} />}
      {used?.length === 0 && (
        <Empty title="Nothing was measured yet" command="platform disk">
          The service measures some minutes after its start, and every six hours, at the lowest priority.
        </Empty>
      )}
      {used?.map((one) => (
        <Machine key={one.machine} used={one} reload={reload} />
      ))}
    </OperatorPage>
  );
}

function Machine({ used, reload }: { used: Use; reload(): Promise<void> }) {
  const { machine, measured_at, seconds, kinds, projects } = used;
  const all = kinds.filter(({ is_part }) => !is_part).reduce((sum, { bytes }) => sum + bytes, 0);
  return (
    <>
      <Section title={machine}>
        <p>
          {bytesText(all)}, measured <Ago time={measured_at} /> in {secondsText(seconds)}.
        </p>
        <RowsTable
          label={`Kinds of data on ${machine}`}
          rows={kinds.filter(({ bytes, problem }) => bytes > 0 || problem !== null)}
          keyOf={({ kind }) => kind}
          columns={{
            Kind: ({ kind, is_part, problem }) => (
              <>
                {words(kind)}
                {is_part && <small class="reason">Counted above as well.</small>}
                {problem && <small class="reason">{problem}</small>}
              </>
            ),
            Size: ({ bytes }) => bytesText(bytes),
            Share: ({ kind, bytes }) => (
              <meter min={0} max={Math.max(1, all)} value={bytes} aria-label={`Share of ${words(kind)}`} />
            ),
          }}
        />
      </Section>
      <Caches used={used} reload={reload} />
      {projects.length > 0 && (
        <Section title="Projects that use most">
          <RowsTable
            label={`Projects on ${machine}`}
            rows={projects}
            keyOf={({ id }) => id}
            columns={{
              Project: ({ id, name }) => <span class="clip">{name ?? id}</span>,
              Size: ({ bytes }) => bytesText(bytes),
              Of: ({ parts }) => partsText(parts),
            }}
          />
        </Section>
      )}
    </>
  );
}

function partsText(parts: Use['projects'][number]['parts']): string {
  const shown = parts.slice(0, PARTS_MAX).map(({ kind, bytes }) => `${words(kind).toLowerCase()} ${bytesText(bytes)}`);
  return shown.join(', ');
}

function Caches({ used: { machine, kinds, cleaning }, reload }: { used: Use; reload(): Promise<void> }) {
  const [isAsked, setAsked] = useState(false);
  const bytes = kinds.filter(({ is_cleaned }) => is_cleaned).reduce((sum, kind) => sum + kind.bytes, 0);
  const isRunning = cleaning !== null && cleaning.ended_at === null;
  const clean = async (): Promise<void> => {
    await request(CLEAN, { machine });
    await reload();
  };
  return (
    <Section title="Caches">
      <p>
        Cleaning the build caches gives up to {bytesText(bytes)}. The next build of each application downloads its
        packages again, and takes longer. Caches of applications that are being deployed stay.
      </p>
      {cleaning && <Cleaned cleaning={cleaning} />}
      <p>
        <button type="button" class="quiet" disabled={isRunning} onClick={() => setAsked(true)}>
          Clean the build caches
        </button>
      </p>
      {isAsked && (
        <Confirm
          title="Clean the build caches?"
          verb="Clean"
          work={clean}
          done={`The build caches on ${machine} are being cleaned.`}
          onClose={() => setAsked(false)}
        >
          They are made again by the next builds. Running applications do not need them.
        </Confirm>
      )}
    </Section>
  );
}

function Cleaned({ cleaning }: { cleaning: NonNullable<Use['cleaning']> }) {
  const { requested_at, ended_at, applications, freed_bytes, kept, problem } = cleaning;
  if (ended_at === null) {
    return (
      <p class="notice" role="status">
        They are being cleaned, since <Ago time={requested_at} />.
      </p>
    );
  }
  if (problem) return <p class="notice bad">{problem}</p>;
  return (
    <p class="faint" role="status">
      Cleaned <Ago time={ended_at} />: {bytesText(freed_bytes)} of {applications} applications
      {kept > 0 && `; those of ${kept} that were being deployed stayed`}.
    </p>
  );
}
