// The machine that answers: processors, memory against what is promised, disks with the days until they are full.
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { Facts, Section, Waiting } from '../../parts/page';
import { RowsTable } from '../../parts/table';
import { Ago, bytesText, momentText, secondsText } from '../../parts/time';
import { OperatorPage } from './frame';

const MACHINE = graphql(`
  query InstallationMachine {
    installationMachine {
      name
      system
      kernel
      up_seconds
      time
      is_clock_synchronised
      database_clock_ahead_seconds
      cpus
      load
      memory_bytes
      memory_available_bytes
      swap_bytes
      swap_free_bytes
      memory_of_instances_bytes
      memory_of_databases_bytes
      promised_storage_bytes
      disks {
        mount
        size_bytes
        used_bytes
        inodes
        inodes_used
        days_until_full
        measured_since
      }
      programs {
        name
        version
      }
    }
  }
`);

type Machine = ResultOf<typeof MACHINE>['installationMachine'];
type Disk = Machine['disks'][number];

const EVERY_MS = 15_000;
/** From here on a disk, and a clock, is no more as it should be. */
const FULL_SHARE = 0.8;
const CLOCK_OFF_SECONDS = 2;

export function MachinePage() {
  const { data, error } = useQuery(MACHINE, {}, EVERY_MS);
  const machine = data?.installationMachine;
  return (
    <OperatorPage title="Machine">
      {!machine && <Waiting error={error} rows={10} />}
      {machine && (
        <>
          <About machine={machine} />
          <Memory machine={machine} />
          <Disks disks={machine.disks} promised={machine.promised_storage_bytes} />
          <Programs machine={machine} />
        </>
      )}
    </OperatorPage>
  );
}

function About({ machine }: { machine: Machine }) {
  const { name, system, kernel, up_seconds, time, is_clock_synchronised, cpus, load } = machine;
  return (
    <Section title={name}>
      <Facts
        facts={[
          ['System', system],
          ['Kernel', kernel, 'double'],
          ['Running for', secondsText(up_seconds)],
          ['Processors', cpus],
          ['Load of 1, 5 and 15 minutes', load.map((one) => one.toFixed(2)).join(', ')],
          ['Clock', momentText(new Date(time))],
          ['Time server', is_clock_synchronised === null ? 'not known' : is_clock_synchronised ? 'followed' : 'none'],
        ]}
      />
      {(load[2] ?? 0) > cpus && (
        <p class="notice">
          More programs wait for a processor than there are processors, for a quarter of an hour now.
        </p>
      )}
      <Clocks machine={machine} />
    </Section>
  );
}

function Clocks({ machine: { database_clock_ahead_seconds: ahead, is_clock_synchronised } }: { machine: Machine }) {
  if (Math.abs(ahead) >= CLOCK_OFF_SECONDS) {
    return (
      <p class="notice bad">
        The clock of the control database is {Math.abs(ahead).toFixed(1)} s {ahead > 0 ? 'ahead of' : 'behind'} that of
        this machine: let both follow a time server.
      </p>
    );
  }
  if (is_clock_synchronised !== false) return null;
  return (
    <p class="notice">
      The clock follows no time server: certificates and two-factor codes depend on it. On Debian,{' '}
      <code>apt-get install systemd-timesyncd</code> lets it follow one.
    </p>
  );
}

function Memory({ machine }: { machine: Machine }) {
  const { memory_bytes: all, memory_available_bytes: available, swap_bytes, swap_free_bytes } = machine;
  const { memory_of_instances_bytes: instances, memory_of_databases_bytes: databases } = machine;
  const promised = instances + databases;
  return (
    <Section title="Memory">
      <Facts
        facts={[
          ['Used', <Share key="used" name="memory" used={all - available} all={all} />, 'double'],
          ['Promised', <Share key="promised" name="promised memory" used={promised} all={all} />, 'double'],
          ['To instances', bytesText(instances)],
          ['To databases', bytesText(databases)],
          ['Swap used', swap_bytes ? `${bytesText(swap_bytes - swap_free_bytes)} of ${bytesText(swap_bytes)}` : 'none'],
        ]}
      />
      {promised > all && (
        <p class="notice">
          More is promised than there is. As long as not everybody uses it at once, nothing happens; else the kernel
          stops the largest programs.
        </p>
      )}
    </Section>
  );
}

function Share({ name, used, all }: { name: string; used: number; all: number }) {
  return (
    <>
      {bytesText(used)} of {bytesText(all)}
      <br />
      <meter min={0} max={Math.max(1, all)} high={all * FULL_SHARE} value={used} aria-label={`Share of ${name}`} />
    </>
  );
}

function Disks({ disks, promised }: { disks: readonly Disk[]; promised: number }) {
  return (
    <Section title="Disks">
      <p class="faint">
        Databases and volumes may take {bytesText(promised)} together.{' '}
        <a href="/installation/disk">What uses the disk</a>
      </p>
      <RowsTable<Disk>
        label="Disks"
        rows={disks}
        keyOf={({ mount }) => mount}
        columns={{
          Mount: ({ mount }) => <code class="clip">{mount}</code>,
          Used: ({ mount, used_bytes, size_bytes }) => <Share name={mount} used={used_bytes} all={size_bytes} />,
          Files: ({ inodes, inodes_used }) => filesText(inodes, inodes_used),
          Full: (disk) => fullText(disk),
          'Trend since': ({ measured_since }) => <Ago time={measured_since} />,
        }}
      />
    </Section>
  );
}

function filesText(inodes: number | null, used: number | null): string {
  return inodes === null || used === null
    ? 'no limit'
    : `${Math.round((used / Math.max(1, inodes)) * 100)} % of inodes`;
}

function fullText({ days_until_full: days, measured_since }: Disk): string {
  if (days !== null) return days < 1 ? 'within a day' : `in ${Math.round(days)} days`;
  return measured_since === null ? 'not known yet' : 'not within a year';
}

function Programs({ machine: { programs } }: { machine: Machine }) {
  return (
    <Section title="Programs">
      <p class="faint">
        <code>platform doctor</code> on the machine says what is missing, and why it is needed.
      </p>
      <RowsTable
        label="Programs"
        rows={programs}
        keyOf={({ name }) => name}
        columns={{ Program: ({ name }) => name, Version: ({ version }) => <code>{version}</code> }}
      />
    </Section>
  );
}
