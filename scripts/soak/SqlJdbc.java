// JDBC's client of Flight SQL, as tools use it: what doesn't hold ends it with an exception.
// usage: SqlJdbc.java URL-WITHOUT-PASSWORD USER PASSWORD
import java.sql.*;
import java.util.*;

public class SqlJdbc {
    static void holds(boolean what, String told) {
        if (!what) throw new AssertionError(told);
        System.out.println("holds: " + told);
    }

    static Connection connect(String url, String user, String password) throws SQLException {
        Properties login = new Properties();
        if (!user.isEmpty()) {
            login.put("user", user);
            login.put("password", password);
        }
        return DriverManager.getConnection(url, login);
    }

    static long count(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getLong(1);
        }
    }

    public static void main(String[] args) throws Exception {
        String url = args[0], user = args[1], password = args[2];
        try (Connection wrong = connect(url, user, "wrong")) {
            holds(false, "a wrong password is refused");
        } catch (SQLException error) {
            holds(error.toString().contains("wrong user or password") || ("" + error.getCause()).contains("wrong user or password"), "a wrong password is refused");
        }
        try (Connection connection = connect(url, user, password)) {
            DatabaseMetaData data = connection.getMetaData();
            holds(data.getDatabaseProductName().equals("binlogz"), "the server has a name");
            Set<String> tables = new TreeSet<>();
            try (ResultSet rows = data.getTables(null, "employees", "%", null)) {
                while (rows.next()) tables.add(rows.getString("TABLE_NAME"));
            }
            holds(tables.contains("salaries") && !tables.contains("changes"), "tables are listed: " + tables);
            Set<String> columns = new TreeSet<>();
            try (ResultSet rows = data.getColumns(null, "employees", "salaries", "%")) {
                while (rows.next()) columns.add(rows.getString("COLUMN_NAME"));
            }
            holds(columns.contains("operation") && columns.contains("after"), "columns are listed: " + columns);
            try (ResultSet rows = data.getPrimaryKeys(null, "employees", "salaries")) {
                holds(!rows.next(), "no primary keys");
            }
            try (ResultSet rows = data.getImportedKeys(null, "employees", "salaries")) {
                holds(!rows.next(), "no foreign keys");
            }
            long updates = count(connection, "SELECT count(*) FROM changes WHERE operation = 'update'");
            try (PreparedStatement statement = connection.prepareStatement(
                    "SELECT count(*) FROM employees.salaries WHERE after.salary > ? AND operation = ?")) {
                statement.setInt(1, 60000);
                statement.setString(2, "insert");
                long bound;
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                    bound = rows.getLong(1);
                }
                holds(bound > 0 && bound == count(connection,
                    "SELECT count(*) FROM employees.salaries WHERE after.salary > 60000 AND operation = 'insert'"),
                    "parameters are values: " + bound);
            }
            try (Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT value, repeat('x', 100) FROM generate_series(1, 300000)")) {
                long read = 0;
                while (rows.next()) read++;
                holds(read == 300000, "a large result is whole");
            }
            try {
                count(connection, "SELECT nothing FROM changes");
                holds(false, "an error has its text");
            } catch (SQLException error) {
                holds((error + "" + error.getCause()).contains("nothing"), "an error has its text");
            }
            long[] found = new long[4];
            Thread[] threads = new Thread[found.length];
            for (int i = 0; i < threads.length; i++) {
                int at = i;
                threads[i] = new Thread(() -> {
                    try (Connection own = connect(url, user, password)) {
                        found[at] = count(own, "SELECT count(*) FROM changes WHERE operation = 'update'");
                    } catch (SQLException error) {
                        throw new RuntimeException(error);
                    }
                });
                threads[i].start();
            }
            for (Thread thread : threads) thread.join();
            holds(Arrays.stream(found).allMatch(one -> one == updates), "several ask at once");
        }
    }
}
