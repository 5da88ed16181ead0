import { createRoot } from 'react-dom/client';

createRoot(document.getElementById('root')).render(<h1>Built by Vite</h1>);
