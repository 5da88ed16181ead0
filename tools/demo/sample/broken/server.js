// It waits for something that never comes, and so never listens.
console.log('waiting for the database');
setInterval(() => console.log('still waiting for the database'), 1000);
