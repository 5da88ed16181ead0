const express = require('express');

const app = express();
app.get('/', (request, response) => response.send(`Express on Yarn with Plug'n'Play, Node.js ${process.version}`));
app.listen(process.env.PORT || 3000, () => console.log('ready'));
