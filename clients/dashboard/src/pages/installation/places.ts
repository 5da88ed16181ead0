// The pages about the installation, for its operators: the side bar shows them, and the palette finds them.
import type { ProjectPage } from '../../project_pages';

export const INSTALLATION_PAGES: readonly ProjectPage[] = [
  { href: '/installation', label: 'Overview', icon: 'installation' },
  { href: '/installation/alarms', label: 'Alarms', icon: 'observer' },
  { href: '/installation/machine', label: 'Machine', icon: 'metrics' },
  { href: '/installation/disk', label: 'Disk use', icon: 'volume' },
  { href: '/installation/work', label: 'Background work', icon: 'processes' },
  { href: '/installation/backups', label: 'Backups', icon: 'backup' },
  { href: '/installation/users', label: 'Users', icon: 'members' },
  { href: '/installation/projects', label: 'All projects', icon: 'project' },
  { href: '/installation/activity', label: 'All activity', icon: 'activity' },
];
