// At the foot of all pages: which version serves them, and for who runs the installation, what is to be done.
import { installation, type Installation } from '../session';
import { Copyable } from './copy';

export function InstallationFoot() {
  const shown = installation.value;
  if (shown === null) return null;
  return (
    <footer class="installation">
      <small>Platform {shown.version}</small>
      {shown.missing_domain && (
        <p>
          <small>{shown.missing_domain}</small>
        </p>
      )}
      {shown.newer_release && <NewerRelease release={shown.newer_release} />}
    </footer>
  );
}

function NewerRelease({ release }: { release: NonNullable<Installation['newer_release']> }) {
  const { version, security, changes, command } = release;
  return (
    <details>
      <summary>
        Version {version} is available{security === null ? '' : ', with changes to security'}
      </summary>
      <p>
        To upgrade, run this command as root on the machine of the platform. An upgrade that fails is undone by itself.
      </p>
      <Copyable text={command} label="command" />
      {changes && <pre class="changes">{changes}</pre>}
    </details>
  );
}
