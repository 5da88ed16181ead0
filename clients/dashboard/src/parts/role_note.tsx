import { projectOf, type Role } from '../session';

const MAY: Record<Role, string> = {
  viewer: 'You can look at everything but secrets. Developers deploy and change resources, owners the project itself.',
  developer: 'You can deploy and change all resources. Only owners change or delete the project and its members.',
  owner: '',
};

/** Why controls are missing, for people who may not do everything. */
export function RoleNote({ projectId }: { projectId: string | undefined }) {
  const role = projectOf(projectId)?.role;
  if (!role || role === 'owner') return null;
  return (
    <details class="role">
      <summary>{role === 'viewer' ? 'View only' : 'Developer'}</summary>
      <p>
        Your role in this project is <strong>{role}</strong>. {MAY[role]} An owner of the project can change your role.
      </p>
    </details>
  );
}
