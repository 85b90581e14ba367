var port = 8125;
module.exports = { port: port };
