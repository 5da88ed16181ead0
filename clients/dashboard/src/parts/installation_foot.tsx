// At the foot of all pages: which version serves them, and for who runs the installation, what is to be done.
import { installation } from '../session';

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
      {shown.newer_release && (
        <p>
          <a href="/installation">
            Version {shown.newer_release.version} is available
            {shown.newer_release.security === null ? '' : ', with changes to security'}
          </a>
        </p>
      )}
    </footer>
  );
}
