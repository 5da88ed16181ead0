// Whether something can be deleted: the switch in its settings, and the way to it from a refused deletion.
import type { ApiError } from '../api/client';
import { useAction } from '../api/use_query';
import { Problem } from './form';
import { showNotice } from './notices';

interface ProtectionProps {
  /** Such as "bucket". */
  kind: string;
  isOn: boolean;
  /** What it protects, where that is more than itself. */
  also?: string;
  set(isOn: boolean): Promise<unknown>;
}

export function Protection({ kind, isOn, also, set }: ProtectionProps) {
  const action = useAction(async () => {
    await set(!isOn);
    showNotice({ text: `Deletion protection of the ${kind} is ${isOn ? 'off' : 'on'}.`, undo: () => set(isOn) });
  });
  return (
    <>
      <div class="danger-zone">
        <p>
          <strong>Deletion protection is {isOn ? 'on' : 'off'}.</strong> With it, the {kind} cannot be deleted
          {also && `, nor ${also}`}.
        </p>
        <button type="button" class="quiet" aria-disabled={action.isRunning} onClick={() => void action.run()}>
          Turn it {isOn ? 'off' : 'on'}
        </button>
      </div>
      <Problem error={action.error} />
    </>
  );
}

/** Where the protection of a resource is turned off, by the prefix of its id. */
const SWITCHES: Record<string, (id: string) => string> = {
  app: (id) => `/applications/${id}/settings`,
  bkt: (id) => `/buckets/${id}`,
  cdn: (id) => inProject(`cdn_zones/${id}?do=updateCdnZone`),
  db: (id) => `/databases/${id}`,
  dnz: (id) => `/dns/${id}`,
  emd: (id) => `/email_domains/${id}`,
  erz: (id) => inProject(`email_relay_zones/${id}?do=updateEmailRelayZone`),
  prj: (id) => `/projects/${id}`,
  reg: (id) => inProject(`registries/${id}?do=updateRegistry`),
  vol: (id) => inProject(`volumes/${id}?do=updateVolume`),
};

/** Their pages are below the project of the page that refused the deletion. */
function inProject(rest: string): string {
  const [, project = ''] = /^\/projects\/(\w+)/.exec(location.pathname) ?? [];
  return `/projects/${project}/resources/${rest}`;
}

/** The way to the switch that a refused deletion names; nothing for other errors. */
export function ProtectionLink({ error }: { error: ApiError }) {
  const id = error.members.protected_by;
  if (error.code !== 'deletion_protected' || typeof id !== 'string') return null;
  const href = SWITCHES[id.replace(/_.*/, '')]?.(id);
  if (!href) return null;
  return (
    <>
      {' '}
      <a href={href}>Open its deletion protection</a>
    </>
  );
}
